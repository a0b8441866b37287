#!/bin/sh
# Adds soft-iWARP to the guest of ../guest/build.sh:
#
#   build.sh DIR GUEST
#
# writes DIR/vmlinuz, DIR/initrd and DIR/version from those of GUEST. The kernel
# of Debian comes without the module siw, so it is built from Debian's sources of
# the same version, three times: as it is, with its peer-to-peer switch on, and
# for MPA revision 1. Needs no root, but apt-get with package lists, dpkg, make,
# gcc, xz, cpio and ldd, and rdma of iproute2. What was downloaded and built is
# kept in DIR/../siw-VERSION.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
guest=$(cd "$2" && pwd)
cache=$(dirname "$out")
PATH=$PATH:/usr/sbin:/sbin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

package=$(cat "$guest/version") # linux-image-6.1.0-9-cloud-amd64_6.1.1-1_amd64.deb
version=${package#*_}
version=${version%_*}
release=${package#linux-image-}
release=${release%%_*}
abi=${release%-cloud-amd64}
series=$(echo "$version" | cut -d. -f1,2)

# unpack DIR PACKAGE... downloads packages and unpacks them into DIR.
unpack() {
  into=$1
  shift
  mkdir -p "$work/debs"
  (cd "$work/debs" && rm -f ./*.deb && apt-get download -qq -o Acquire::Retries=5 "$@" && for deb in ./*.deb; do dpkg -x "$deb" "$into"; done)
}

# tool NAME prints NAME=VERSION if the archive has that version, else NAME: while an update comes in, the tools of the
# same series have a newer revision than the kernel and its headers.
tool() {
  if apt-cache madison "$1" | awk '{ print $3 }' | grep -qxF "$version"; then echo "$1=$version"; else echo "$1"; fi
}

made=$cache/siw-$version
if [ ! -e "$made/siw.ko" ]; then
  tree=$work/tree
  unpack "$tree" "linux-headers-$release=$version" "linux-headers-$abi-common=$version" "$(tool "linux-kbuild-$series")" \
    "$(tool linux-compiler-gcc-12-x86)" "linux-source-$series=$version"
  sed -i "s#/usr/src#$tree/usr/src#" "$tree/usr/src/linux-headers-$release/Makefile"
  tar -xJf "$tree/usr/src/linux-source-$series.tar.xz" -C "$work" "linux-source-$series/drivers/infiniband/sw/siw"
  mkdir -p "$work/made"
  # build NAME [SED]... builds the module with a switch changed.
  build() {
    cp -r "$work/linux-source-$series/drivers/infiniband/sw/siw" "$work/$1"
    [ -z "$2" ] || sed -i "$2" "$work/$1/siw_main.c"
    make -s -C "$tree/usr/src/linux-headers-$release" M="$work/$1" CONFIG_RDMA_SIW=m modules
    strip --strip-debug -o "$work/made/$1.ko" "$work/$1/siw.ko"
  }
  build siw-p2p 's/^const bool peer_to_peer;/const bool peer_to_peer = true;/; s/^const bool mpa_crc_required;/const bool mpa_crc_required = true;/'
  build siw-rev1 's/^u_char mpa_version = MPA_REVISION_2;/u_char mpa_version = MPA_REVISION_1;/'
  build siw ''
  mkdir -p "$made"
  mv "$work/made/siw-p2p.ko" "$work/made/siw-rev1.ko" "$made"
  mv "$work/made/siw.ko" "$made"
fi

root=$work/root
apps=$work/apps
lib=usr/lib/x86_64-linux-gnu
mkdir -p "$root/siw" "$root/bin" "$root/$lib/libibverbs" "$root/lib64" "$root/etc/libibverbs.d"
unpack "$apps" rdmacm-utils perftest librdmacm1 libibverbs1 ibverbs-providers libibumad3 libpci3 libnl-3-200 libnl-route-3-200 libibverbs-dev librdmacm-dev
cp "$apps/usr/bin/rping" "$root/bin"
for test in send write read; do cp "$apps/usr/bin/ib_${test}_bw" "$apps/usr/bin/ib_${test}_lat" "$root/bin"; done
cp "$apps/$lib"/libibverbs/libsiw-*.so "$root/$lib/libibverbs"
cp "$apps/etc/libibverbs.d/siw.driver" "$root/etc/libibverbs.d"
cp "$(command -v rdma)" "$root/bin"
gcc -O2 -Wall -o "$root/bin/siwpeer" -I "$apps/usr/include" "$here/peer.c" -L "$apps/$lib" -L "$apps/lib/x86_64-linux-gnu" \
  -Wl,--unresolved-symbols=ignore-in-shared-libs -lrdmacm -libverbs
LD_LIBRARY_PATH=$apps/$lib:$apps/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH
for program in "$root"/bin/* "$root/$lib"/libibverbs/*; do ldd "$program"; done | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/lib64[^ ]*\) .*/\1/p' |
  sort -u | while read -r so; do
  case $so in
  /lib64/*) cp -L "$so" "$root/lib64" ;;
  *) cp -L "$so" "$root/$lib" ;;
  esac
done
unset LD_LIBRARY_PATH
cp -L "$(gcc -print-file-name=libgcc_s.so.1)" "$root/$lib" # for pthread_exit
[ -e "$cache/kernel/lib/modules/$release" ] || { echo "the kernel $release is not there any more: remove $cache" >&2; exit 1; }
for module in crc32c_generic libcrc32c ib_uverbs rdma_ucm iw_cm; do
  modprobe -d "$cache/kernel" -S "$release" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | awk '!seen[$0]++' | while read -r ko; do
  cp "$ko" "$root/siw"
  basename "$ko" >> "$root/siw/order"
done
cp "$made"/*.ko "$root/siw"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
# An archive behind another one adds to it.
(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) | gzip -1 > "$work/more"
cp "$guest/vmlinuz" "$out/vmlinuz"
cat "$guest/initrd" "$work/more" > "$out/initrd"
cp "$guest/version" "$out/version"

#!/bin/sh
# Makes a guest that boots Debian's own kernel with its SCTP stack:
#
#   build.sh DIR
#
# writes DIR/vmlinuz, DIR/initrd and DIR/version. Needs no root, but apt-get
# with package lists, dpkg, busybox (static), cpio, kmod and gcc. The kernel is
# downloaded once and kept in DIR/../kernel.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
mkdir -p "$out" "$out/../kernel"
kernel=$(cd "$out/../kernel" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$PATH:/usr/sbin:/sbin

if [ ! -e "$kernel/done" ]; then
  # The lists may be missing, or older than the archive, and the network bad.
  for try in 1 2 3 4 5; do
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
    if [ -n "$package" ] && (cd "$work" && rm -f ./*.deb && apt-get -o Acquire::Retries=3 download -qq "$package"); then
      break
    fi
    [ $try -lt 5 ] || { echo 'the package linux-image-cloud-amd64 cannot be downloaded' >&2; exit 1; }
    sleep $((try * 2))
    [ "$(id -u)" -ne 0 ] || apt-get update -qq || true
  done
  (cd "$work" && dpkg -x linux-image-*.deb tree)
  rm -rf "$kernel/lib" "$kernel/boot"
  mv "$work/tree/lib" "$work/tree/boot" "$kernel"
  basename "$work"/linux-image-*.deb > "$kernel/done"
fi
version=$(basename "$kernel"/lib/modules/*)
[ -e "$kernel/lib/modules/$version/modules.dep" ] || depmod -b "$kernel" "$version"

root=$work/root
mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/modules"
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
for module in virtio_pci virtio_net sctp; do
  modprobe -d "$kernel" -S "$version" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | awk '!seen[$0]++' | while read -r ko; do
  cp "$ko" "$root/modules"
  basename "$ko" >> "$root/modules/order"
done
gcc -O2 -static -o "$root/bin/peer" "$here/../testdata/peer/"*.c -lpthread
(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet) | gzip -1 > "$work/initrd"
cp "$kernel/boot/vmlinuz-$version" "$out/vmlinuz"
mv "$work/initrd" "$out/initrd"
cat "$kernel/done" > "$out/version"

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
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
  [ -n "$package" ] || { echo 'no package linux-image-cloud-amd64: run apt-get update' >&2; exit 1; }
  (cd "$work" && apt-get download -qq "$package" && dpkg -x linux-image-*.deb tree)
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

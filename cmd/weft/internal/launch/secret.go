package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/weftstack/weft/internal/pmi"
)

// This file keeps secrets out of command lines, which every user of a host can read:
// they travel in files that only their owner may read.

// maxSecretFile bounds a file with the address and the secret of a name server, in
// bytes.
const maxSecretFile = 1024

// readNameServer returns the content of a file that weft nameserver -file has written:
// ADDRESS/SECRET.
func readNameServer(name string) (string, error) {
	if looksLikeSecret(name) {
		return "", fmt.Errorf("-nameserver: want the file that weft nameserver -file has written, not ADDRESS/SECRET: other users can read command lines (or set %s)", pmi.EnvNames)
	}
	text, err := readPrivate(name)
	if err != nil {
		return "", fmt.Errorf("-nameserver: %w", err)
	}
	if !looksLikeSecret(text) {
		return "", fmt.Errorf("-nameserver %s: want one line ADDRESS/SECRET, as weft nameserver -file writes it", name)
	}
	return text, nil
}

// looksLikeSecret reports whether s is of the form HOST:PORT/SECRET.
func looksLikeSecret(s string) bool {
	addr, secret, _ := strings.Cut(s, "/")
	_, port, err := net.SplitHostPort(addr)
	return err == nil && port != "" && goodSecret(secret)
}

// goodSecret reports whether s can be the secret of a name server.
func goodSecret(s string) bool { return s != "" && !strings.ContainsAny(s, " /=\n\r\t") }

// readPrivate returns the only line of a file. It refuses files that others may read.
func readPrivate(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	if mode := st.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return "", fmt.Errorf("%s has mode %04o: others may read the secret in it; want 0600 (chmod 600 %[1]s)", name, mode)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(b))
	if len(b) > maxSecretFile || text == "" || strings.ContainsAny(text, "\r\n") {
		return "", fmt.Errorf("%s: want one line of at most %d bytes", name, maxSecretFile)
	}
	return text, nil
}

// writePrivate replaces a file by one with the given line and mode 0600.
func writePrivate(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".weft-secret-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// keptSecret returns the secret in a file of a name server that ran before, or a new one
// if there is no such file.
func keptSecret(name string) (string, error) {
	text, err := readPrivate(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newToken(), nil
	case err != nil:
		return "", err
	case !looksLikeSecret(text):
		return "", fmt.Errorf("%s is not a file of weft nameserver -file: remove it first", name)
	}
	_, secret, _ := strings.Cut(text, "/")
	return secret, nil
}

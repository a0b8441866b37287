package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"strings"
	"time"
)

// file is a file of an archive.
type file struct {
	name string // in the archive
	path string // of its content
	mode fs.FileMode
}

// archive returns an archive of files in the directory base, a zip file if name ends so
// and a compressed tar file otherwise. The same files give the same octets: all have the
// modification time when and no owner.
func archive(name, base string, when time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	write := writeTar
	if strings.HasSuffix(name, ".zip") {
		write = writeZip
	}
	err := write(&b, base, when.UTC(), files)
	return b.Bytes(), err
}

func writeTar(b *bytes.Buffer, base string, when time.Time, files []file) error {
	z := gzip.NewWriter(b)
	w := tar.NewWriter(z)
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		head := &tar.Header{Name: base + "/" + f.name, Mode: int64(f.mode), Size: int64(len(content)), ModTime: when}
		if err := w.WriteHeader(head); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return z.Close()
}

func writeZip(b *bytes.Buffer, base string, when time.Time, files []file) error {
	w := zip.NewWriter(b)
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		head := &zip.FileHeader{Name: base + "/" + f.name, Method: zip.Deflate, Modified: when}
		head.SetMode(f.mode)
		out, err := w.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := out.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}

package git

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// idBytes is how long an object's id is.
func idBytes(objectFormat string) int {
	if objectFormat == "sha256" {
		return sha256.Size
	}
	return sha1.Size
}

// newHash makes ids of so many bytes.
func newHash(idBytes int) hash.Hash {
	if idBytes == sha256.Size {
		return sha256.New()
	}
	return sha1.New()
}

// HashBlob computes the id that size bytes of r have as a blob, in process and without
// any filter. An r that ends early or goes on is an error.
func HashBlob(objectFormat string, size int64, r io.Reader) (OID, error) {
	h := newHash(idBytes(objectFormat))
	fmt.Fprintf(h, "blob %d\x00", size)
	n, err := io.Copy(h, io.LimitReader(r, size+1))
	if err != nil {
		return "", err
	}
	if n != size {
		return "", fmt.Errorf("%d bytes instead of %d", n, size)
	}
	return OID(hex.EncodeToString(h.Sum(nil))), nil
}

package git

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// HashBlob computes the id that size bytes of r have as a blob, in process and without
// any filter. An r that ends early or goes on is an error.
func HashBlob(objectFormat string, size int64, r io.Reader) (OID, error) {
	var h hash.Hash = sha1.New()
	if objectFormat == "sha256" {
		h = sha256.New()
	}
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

package git

import (
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Bring copies a commit and what it brings beyond another that d has, as Receive does, but of what differs between the two alone:
// no history is looked at, and the objects are packed in process. It returns what differs.
func (d Dir) Bring(ctx context.Context, op string, from Dir, commit, beyond OID) (edits []Edit, err error) {
	s := from.Session(ctx)
	defer s.Close()
	edits, objects, err := s.brought(commit, beyond)
	if err != nil {
		return nil, err
	}
	err = d.Ops.Do(op, func() error {
		pr, pw := io.Pipe()
		packed := make(chan error, 1)
		go func() {
			err := s.pack(pw, objects)
			pw.CloseWithError(err)
			packed <- err
		}()
		err := d.unpack(ctx, pr, uint32(len(objects)))
		pr.CloseWithError(io.ErrClosedPipe)
		if failed := <-packed; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
			err = failed // git had nothing to read because of it
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("copy %.12s: %w", commit, err)
	}
	return edits, nil
}

// brought returns what differs between two commits, and the objects of the first that this takes.
func (s *Session) brought(commit, beyond OID) (edits []Edit, objects []OID, err error) {
	c, err := s.compare(beyond, commit, math.MaxInt)
	if err != nil {
		return nil, nil, err
	}
	had := map[OID]bool{}
	add := func(oid OID) {
		if !had[oid] {
			had[oid], objects = true, append(objects, oid)
		}
	}
	add(commit)
	for _, tree := range c.made {
		add(tree)
	}
	for _, e := range c.edits {
		if !e.New.Absent() && e.New.Mode != Submodule {
			add(e.New.OID)
		}
	}
	return c.edits, objects, nil
}

// packed are the kinds of objects, as a pack says them.
var packed = map[string]byte{"commit": 1, "tree": 2, "blob": 3}

// pack writes objects as a pack. Each is whole in it: git makes differences of them when it packs anew.
func (s *Session) pack(w io.Writer, objects []OID) error {
	sum := newHash(len(objects[0]) / 2)
	out := io.MultiWriter(w, sum)
	header := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(objects)))
	if _, err := out.Write(header); err != nil {
		return err
	}
	z, err := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	if err != nil {
		return err
	}
	err = s.r.all(objects, func(oid OID, kind string, size int64, body io.Reader) error {
		if packed[kind] == 0 {
			return fmt.Errorf("object %s is a %s", oid, kind)
		}
		if _, err := out.Write(packedHeader(packed[kind], size)); err != nil {
			return err
		}
		z.Reset(out)
		if _, err := io.Copy(z, body); err != nil {
			return err
		}
		return z.Close()
	})
	if err != nil {
		return err
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

// packedHeader is an object's kind and size: four bits of the size with the kind, then seven in each byte.
func packedHeader(kind byte, size int64) []byte {
	b := []byte{kind<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		b[len(b)-1] |= 0x80
		b = append(b, byte(size&0x7f))
	}
	return b
}

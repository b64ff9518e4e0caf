package api

import (
	"encoding/binary"
	"fmt"
	"io"
)

// FrameType says what a frame of a shell's connection carries.
type FrameType byte

const (
	FrameData    FrameType = 0 // bytes of the terminal, either way
	FrameResize  FrameType = 1 // client to daemon: rows and columns, 16 bits each
	FrameExit    FrameType = 2 // daemon to client, last: exit status, 32 bits
	FrameProblem FrameType = 3 // daemon to client, last: a Problem as JSON
)

// FrameBytesMax bounds one frame's payload.
const FrameBytesMax = 64 << 10

// WriteFrame sends one frame: type, length in 4 bytes big-endian, payload.
func WriteFrame(w io.Writer, t FrameType, payload []byte) error {
	if len(payload) > FrameBytesMax {
		return fmt.Errorf("frame of %d bytes is over %d", len(payload), FrameBytesMax)
	}
	frame := make([]byte, 5, 5+len(payload))
	frame[0] = byte(t)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload)))
	_, err := w.Write(append(frame, payload...))
	return err
}

// ReadFrame reads one frame; io.EOF only between frames.
func ReadFrame(r io.Reader) (FrameType, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	t, n := FrameType(head[0]), binary.BigEndian.Uint32(head[1:])
	if t > FrameProblem {
		return 0, nil, fmt.Errorf("frame of unknown type %d", t)
	}
	if n > FrameBytesMax {
		return 0, nil, fmt.Errorf("frame of %d bytes is over %d", n, FrameBytesMax)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("frame of %d bytes was cut: %w", n, err)
	}
	return t, payload, nil
}

// Resize is the payload of a resize frame.
func Resize(rows, cols uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, rows), cols)
}

// ReadResize reads one.
func ReadResize(payload []byte) (rows, cols uint16, err error) {
	if len(payload) != 4 {
		return 0, 0, fmt.Errorf("a resize has 4 bytes, not %d", len(payload))
	}
	return binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:]), nil
}

// ExitStatus is the payload of an exit frame.
func ExitStatus(code int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(int32(code)))
}

// ReadExitStatus reads one.
func ReadExitStatus(payload []byte) (int, error) {
	if len(payload) != 4 {
		return 0, fmt.Errorf("an exit status has 4 bytes, not %d", len(payload))
	}
	return int(int32(binary.BigEndian.Uint32(payload))), nil
}

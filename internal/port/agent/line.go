package agent

import (
	"bufio"
	"errors"
)

// ErrLong is the error of a line that is longer than a limit.
var ErrLong = errors.New("a line is too long")

// ReadLine reads a line of at most limit bytes, its newline included. Errors: ErrLong; what in says, with what came before it.
func ReadLine(in *bufio.Reader, limit int) (line []byte, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		if len(line)+len(piece) > limit {
			return nil, ErrLong
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"sallyport/internal/port/agent"
)

// event is one server-sent event.
type event struct {
	data []byte
	done bool // the stream said that it is over in the way of chat completions
}

const (
	eventBytesMax  = 4 << 20
	answerBytesMax = 32 << 20 // of a stream in all
)

var (
	errCut  = errors.New("the model's answer broke off")
	errLong = errors.New("the model's answer is longer than the limit")
)

// events reads server-sent events: only their data matters to the wires. The end of the stream is errCut: every wire says itself
// when it is over.
func events(from io.Reader) func() (event, error) {
	limited := &io.LimitedReader{R: from, N: answerBytesMax}
	r := bufio.NewReaderSize(limited, 64<<10)
	return func() (event, error) {
		var data []byte
		for {
			line, err := agent.ReadLine(r, eventBytesMax)
			if errors.Is(err, agent.ErrLong) || limited.N <= 0 {
				return event{}, errLong
			}
			line = bytes.TrimRight(line, "\r\n")
			if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
				data = append(data, '\n')
				if len(data) > eventBytesMax {
					return event{}, errLong
				}
			}
			if len(line) > 0 && err == nil {
				continue
			}
			if data = bytes.TrimSpace(data); len(data) > 0 {
				if strings.TrimSpace(string(data)) == "[DONE]" {
					return event{done: true}, nil
				}
				return event{data: data}, nil
			}
			if err != nil {
				return event{}, errCut
			}
			data = nil
		}
	}
}

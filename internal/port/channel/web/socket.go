package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	dialMax  = 20 * time.Second
	writeMax = 10 * time.Second
)

// Socket is a web socket. One reads, and any number write.
type Socket struct {
	conn    *websocket.Conn
	writing sync.Mutex
	unhook  func() bool
}

// Dial opens a web socket, which ends with ctx.
func Dial(ctx context.Context, address string) (*Socket, error) {
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialMax}
	conn, resp, err := dialer.DialContext(ctx, address, nil)
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
	if err != nil {
		return nil, bare(err)
	}
	conn.SetReadLimit(AnswerBytesMax)
	return &Socket{conn: conn, unhook: context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
}

// Read returns the next message. Without any, or a ping, for so long there is an error.
func (s *Socket) Read(silence time.Duration) ([]byte, error) {
	s.conn.SetPingHandler(func(said string) error {
		_ = s.conn.SetReadDeadline(time.Now().Add(silence)) // a closed connection says so at the next read
		err := s.conn.WriteControl(websocket.PongMessage, []byte(said), time.Now().Add(writeMax))
		if errors.Is(err, websocket.ErrCloseSent) {
			return nil
		}
		return err
	})
	_ = s.conn.SetReadDeadline(time.Now().Add(silence))
	_, message, err := s.conn.ReadMessage()
	return message, err
}

// Write sends a message in JSON.
func (s *Socket) Write(message any) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeMax)); err != nil {
		return err
	}
	return s.conn.WriteJSON(message)
}

// Close ends the connection without a word.
func (s *Socket) Close() {
	s.unhook()
	_ = s.conn.Close() // nothing more comes or goes, whatever it says
}

// Closed returns the code with which the other side has ended a connection; 0 = without one.
func Closed(err error) int {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return closed.Code
	}
	return 0
}

// Broken is the error of a connection that has ended, without what the other side wrote.
func Broken(what string, err error) error {
	if code := Closed(err); code != 0 {
		return fmt.Errorf("%s has ended the connection (code %d)", what, code)
	}
	return fmt.Errorf("the connection to %s has broken: %w", what, bare(err))
}

package cli

import (
	"context"
	"io"
	"testing"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// A daemon that is to end says here that it cannot: so who asked it to is told apart from who left it alone.
func TestServeEndsNoDaemonWhoseAgentIsInATurn(t *testing.T) {
	for working, asked := range map[bool]bool{true: false, false: true} {
		d := newDaemon(t)
		d.chats = []api.Chat{{ID: "cht-00000001", Live: true}, {ID: "cht-00000002", Live: true, Working: working}}
		a := &app{Program: Program{Err: io.Discard, Connect: func(context.Context, string, bool) (*client.Client, error) { return client.New(d.socket), nil }}}
		if err := makeWay(t.Context(), a, "/h"); (err != nil) != asked {
			t.Errorf("a turn under way %t: asked to end %t, %v", working, err != nil, err)
		}
	}
}

// Package adapter is what stands in a sandbox between an agent with a protocol of its own and the host: to the host it is
// a program that speaks the messages of SV-083 and tells the end of each turn; to the agent it is its user.
//
// What an agent writes is read here and nowhere else. It is shown as lines of text that no host takes for an answer, in bounds
// for each turn and for all of them. That an agent says it is done says nothing: the host looks at the tree.
package adapter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/agent"
)

// Statuses of the program.
const (
	statusFailed = 1   // its last turn failed
	statusOrder  = 2   // it was started in another way than by the host
	statusSignal = 143 // it was asked to end by SIGTERM
)

// Main is `runner adapt`: it drives the agent that the first line of stdin asks for until stdin ends, and returns its status.
func Main(engines map[string]agent.Engine) int {
	// The agent has the same uid: what goes to the host from here is not to be its own words.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "adapter: hide from the agent:", err)
		return statusFailed
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return Run(context.Background(), Options{Engines: engines, In: os.Stdin, Out: os.Stdout, Home: os.Getenv("HOME"), Hooks: hooksDir, Ended: ended})
}

// Options are what Main makes of its process.
type Options struct {
	Engines map[string]agent.Engine
	In      io.Reader
	Out     io.Writer
	Home    string           // the agent's home folder
	Hooks   string           // folder of the hooks of a conversation's group; it need not be there
	Ended   <-chan os.Signal // somebody asks it to end
}

// Run is Main with all that it uses.
func Run(ctx context.Context, o Options) int {
	in := bufio.NewReaderSize(o.In, 64<<10)
	order, err := readOrder(in)
	if err != nil {
		fmt.Fprintln(o.Out, "adapter: read what is asked:", err)
		return statusOrder
	}
	engine, ok := o.Engines[order.Engine]
	if !ok {
		fmt.Fprintf(o.Out, "adapter: there is no engine %q\n", order.Engine)
		return statusOrder
	}
	a := &adapter{order: order, engine: engine, out: newShown(o.Out), home: o.Home, ended: o.Ended, inbox: post(in), known: map[string]bool{}}
	if order.Chat {
		a.hooks = hooks{dir: o.Hooks}
		a.out.converse(order.Off, a.hooks.has(beforeSend))
	}
	return a.drive(ctx)
}

// readOrder reads the first line, strictly: host and adapter are one build.
func readOrder(in *bufio.Reader) (o agent.Order, err error) {
	line, err := agent.ReadLine(in, agent.OrderBytesMax)
	if err != nil && !(errors.Is(err, io.EOF) && len(line) > 0) {
		return o, err
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, err
	}
	if o.MaxTurns <= 0 || o.MaxTurns > agent.TurnsMax {
		o.MaxTurns = agent.TurnsMax
	}
	return o, nil
}

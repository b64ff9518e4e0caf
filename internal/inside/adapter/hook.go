package adapter

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sallyport/internal/base/inert"
)

// Hooks of a group (runner/hooks). Each is given one JSON object and answers with one.
const (
	hooksDir   = "/app/src/hooks"
	onStart    = "on-start"    // before the first words of a session: what it answers stands before them
	onMessage  = "on-message"  // before words reach the agent
	beforeSend = "before-send" // before what the agent said in a turn is sent
)

const (
	hookWithin   = 10 * time.Second
	hookBytesMax = 1 << 20 // of an answer
	hookSaidMax  = 300     // of what it writes to its stderr
)

// hooks runs those that there are in a folder.
type hooks struct {
	dir    string        // "" = there are none
	within time.Duration // in which one answers; 0 = hookWithin
}

// asked is what a hook is given.
type asked struct {
	Hook   string  `json:"hook"`
	Agent  string  `json:"agent,omitempty"`  // of on-start
	Loaded bool    `json:"loaded,omitempty"` // of on-start: the agent goes on with what was said before
	Text   *string `json:"text,omitempty"`   // of the other two
}

// answered is what a hook answers; nothing in it changes nothing.
type answered struct {
	Text *string `json:"text"` // instead of the one that it was given
	Drop bool    `json:"drop"` // the text goes no further
}

// has reports whether there is a hook.
func (h hooks) has(name string) bool {
	if h.dir == "" {
		return false
	}
	info, err := os.Stat(filepath.Join(h.dir, name))
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// ask has a hook answer; with no hook the answer is empty. The error is one line.
func (h hooks) ask(ctx context.Context, a asked) (answered, error) {
	if !h.has(a.Hook) {
		return answered{}, nil
	}
	raw, err := h.run(ctx, a)
	if err != nil {
		return answered{}, fmt.Errorf("the hook %s failed: %w", a.Hook, err)
	}
	var out answered
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err = d.Decode(&out)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows it")
		}
	}
	if err != nil {
		return answered{}, fmt.Errorf("the hook %s did not answer with one JSON object: %s", a.Hook, inert.Brief(err.Error(), hookSaidMax))
	}
	return out, nil
}

// run runs a hook in a process group of its own, which ends with it.
func (h hooks) run(ctx context.Context, a asked) ([]byte, error) {
	within := cmp.Or(h.within, hookWithin)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it did not end within %s", within))
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(h.dir, a.Hook))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	cmd.WaitDelay = time.Second // what left the group may hold its output
	cmd.Stdin = bytes.NewReader(encoded(a))
	out, said := bounded{limit: hookBytesMax}, bounded{limit: hookSaidMax}
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		return nil, cmp.Or(context.Cause(ctx), err) // nothing is started once its time is over
	}
	err := cmd.Wait()
	_ = group() // what it left behind; gone already is as good

	switch words := strings.TrimSpace(said.kept.String()); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case out.over:
		return nil, fmt.Errorf("its answer has more than %d bytes", hookBytesMax)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay) && words != "":
		return nil, fmt.Errorf("%w: %s", err, inert.Brief(words, hookSaidMax))
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, err
	}
	return out.kept.Bytes(), nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	kept  bytes.Buffer
	limit int
	over  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.kept.Len()
	b.over = b.over || len(p) > room
	b.kept.Write(p[:min(len(p), max(0, room))])
	return len(p), nil
}

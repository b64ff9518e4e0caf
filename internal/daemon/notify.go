package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/inert"
	"sallyport/internal/door/client"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/target"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/secret"
)

const (
	notifyTime     = 10 * time.Second
	notifyBytesMax = 8 << 10 // of a text
)

// teller runs the home's notify.command, as the file says at that moment.
type teller struct {
	home     string
	settings *config.Settings
	ops      disk.Ops
	secrets  *secret.Scanner
}

var _ ledger.Teller = teller{}

// Tell runs the command once: nil if it ended with 0 within 10 s. Errors: ledger.ErrNobody without a command.
func (t teller) Tell(ctx context.Context, n ledger.Note) error {
	command := t.settings.Sallyport().Notify.Command
	if command == "" {
		return ledger.ErrNobody
	}
	if err := t.run(ctx, string(command), n); err != nil {
		return fmt.Errorf("notify.command: %w", err)
	}
	return nil
}

func (t teller) run(ctx context.Context, words string, n ledger.Note) (err error) {
	text := inert.Block(n.Text, notifyBytesMax)
	in, err := target.Memory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := target.Memory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := in.WriteString(text + "\n"); err != nil {
		return err
	}
	if err := in.Truncate(int64(len(text) + 1)); err != nil {
		return err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	cmd := target.Command{
		Words: words, Dir: t.home, Stdin: in, Out: out, Limit: notifyTime, Stays: true,
		Env: target.Environment("SALLYPORT_CHANGE="+string(n.Change), "SALLYPORT_KIND="+string(n.Kind), "SALLYPORT_TEXT="+text,
			"SALLYPORT_NEXT="+t.command(n.Next)),
	}
	err = t.ops.Do("notify:run", func() error { return cmd.Run(ctx) })
	if err == nil {
		return nil
	}
	if said := strings.TrimSpace(t.secrets.Redact(target.Said(out))); said != "" {
		return fmt.Errorf("%w: %s", err, inert.Line(said[:min(len(said), 1000)]))
	}
	return err
}

// command is a command line that works in any shell of the person's: it names the home where that is not their own.
func (t teller) command(next string) string {
	own := client.Me()
	getenv := own.Getenv
	own.Getenv = func(name string) string {
		if name == "SALLYPORT_HOME" {
			return ""
		}
		return getenv(name)
	}
	next = inert.Line(next)
	rest, ours := strings.CutPrefix(next, "sallyport ")
	if usual, err := own.Home(""); !ours || err == nil && usual == t.home || strings.Contains(next, "--home") {
		return next
	}
	return "sallyport --home " + inert.Path(t.home) + " " + rest
}

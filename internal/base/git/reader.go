package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
)

// reader asks a repository for objects, one question after the other, for one goroutine. Between two leases of it
// the process that answers waits with the context's Readers, if there are any; else it ends with the lease.
type reader struct {
	dir  Dir
	ctx  context.Context
	pool *Readers // nil = none
	proc *process // nil = none runs yet
	off  func() bool
}

// reader leases one; give it back with close.
func (d Dir) reader(ctx context.Context) *reader {
	r := &reader{dir: d, ctx: ctx}
	if pool := readersOf(ctx); pool != nil && d.Objects == "" {
		r.pool = pool
		if p := pool.take(d); p != nil {
			r.hold(p)
		}
	}
	return r
}

// close gives the process back, or ends it if it cannot be asked again.
func (r *reader) close() {
	p := r.proc
	if p == nil {
		return
	}
	r.proc = nil
	if r.off() && !p.asked && r.pool != nil {
		r.pool.give(r.dir, p)
		return
	}
	_, _ = p.end(true)
}

// hold takes a process for this lease: the end of the context is the end of it.
func (r *reader) hold(p *process) {
	r.proc, r.off = p, context.AfterFunc(r.ctx, p.kill)
}

// drop ends a process that is out of step, or that has died, and returns what it complained of and what it ended with.
func (r *reader) drop(kill bool) (stderr fmt.Stringer, err error) {
	p := r.proc
	r.proc = nil
	r.off()
	return p.end(kill)
}

// errMissing says that a revision names nothing.
var errMissing = errors.New("names no object")

// ask puts one question, whose first line is the answer. What fails with a process that was there before is asked once
// more of a new one: the repository may have been packed anew, or borrow from another since, and a process may have been killed.
func (r *reader) ask(verb, rev string) (header, error) {
	if strings.ContainsAny(rev, "\n\x00") { // it would be two questions, or half of one
		return header{}, fmt.Errorf("%.100q is no revision", rev)
	}
	if oid, _, peeled := strings.Cut(rev, "^"); peeled && OID(oid).Valid() { // a process remembers the tree of a commit that is gone
		if h, err := r.ask("info", oid); err != nil {
			return h, err
		}
		r.proc.asked = false
	}
	for {
		fresh := r.proc == nil
		if fresh {
			p, err := r.dir.read(r.pool != nil)
			if err != nil {
				return header{}, r.dir.finish(r.ctx, "cat-file", err, &tail{})
			}
			r.hold(p)
		}
		h, err := r.proc.ask(verb, rev)
		if err == nil || errors.Is(err, errMissing) && (fresh || refAlone(rev)) {
			return h, err
		}
		stderr, ended := r.drop(!errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE))
		if r.ctx.Err() != nil {
			return h, fmt.Errorf("read %q: %w", rev, context.Cause(r.ctx))
		}
		if !fresh {
			continue
		}
		if failed := r.dir.finish(r.ctx, "cat-file", ended, stderr); failed != nil {
			err = failed
		}
		return h, fmt.Errorf("read %q: %w", rev, err)
	}
}

// refAlone reports whether a revision is the full name of a ref and nothing else: refs are read anew for each question.
func refAlone(rev string) bool { return strings.HasPrefix(rev, "refs/") && !strings.Contains(rev, "^") }

// next asks for one object and hands its bytes to each, which need not read all of them.
func (r *reader) next(oid OID, each func(kind string, size int64, body io.Reader) error) error {
	return r.contents(string(oid), func(h header, body io.Reader) error { return each(h.kind, h.size, body) })
}

// atOnce is how many questions are put before the first is answered. Together they have less than 4096 bytes, so that the least
// pipe holds them while git waits for its answers to be read.
const atOnce = 48

// many asks about many objects, in order, and does not wait for one answer before it puts the next question. What goes wrong on
// the way is asked again by itself.
func (r *reader) many(verb string, oids []OID, take func(oid OID, h header) error, alone func(oid OID) error) error {
	for chunk := range slices.Chunk(oids, atOnce) {
		for i, oid := range chunk {
			if i == 1 && r.proc != nil && r.proc.put(verb, chunk[1:]...) != nil {
				_, _ = r.drop(true)
			}
			ahead := i > 0 && r.proc != nil && r.proc.asked
			if !ahead {
				if err := alone(oid); err != nil {
					return err
				}
				continue
			}
			h, err := r.proc.header()
			if err != nil { // what else is answered is nobody's question any more
				_, _ = r.drop(true)
				err = alone(oid)
			} else if err = take(oid, h); r.proc != nil {
				r.proc.asked = i < len(chunk)-1
			}
			if err != nil {
				if r.proc != nil && r.proc.asked { // what is still to come would be taken for the answer to the next question
					_, _ = r.drop(true)
				}
				return err
			}
		}
	}
	return nil
}

// all is next for many objects.
func (r *reader) all(oids []OID, each func(oid OID, kind string, size int64, body io.Reader) error) error {
	return r.many("contents", oids, func(oid OID, h header) error {
		body := &answer{rev: string(oid), from: r.proc.out, left: h.size}
		return r.shut(body, each(oid, h.kind, h.size, body))
	}, func(oid OID) error {
		return r.next(oid, func(kind string, size int64, body io.Reader) error { return each(oid, kind, size, body) })
	})
}

// drainMax is how much of an answer that nobody reads is read to its end; with more it is cheaper to begin anew.
const drainMax = 1 << 20

// contents is next for any revision.
func (r *reader) contents(rev string, each func(h header, body io.Reader) error) error {
	h, body, err := r.open(rev)
	if err != nil {
		return err
	}
	return r.shut(body, each(h, body))
}

// open asks for one object; its bytes are read until shut.
func (r *reader) open(rev string) (header, *answer, error) {
	h, err := r.ask("contents", rev)
	if errors.Is(err, errMissing) {
		err = problem.Errorf(problem.NotFound, r.dir.Command("fsck"), "object %s is missing", rev)
	}
	if err != nil {
		return h, nil, err
	}
	return h, &answer{rev: rev, from: r.proc.out, left: h.size}, nil
}

// shut brings the process back into step, or drops it, and returns what failed: the caller of open with what it read, or the reading.
func (r *reader) shut(body *answer, err error) error {
	if err == nil || body.left < drainMax {
		_, _ = io.Copy(io.Discard, body)
	}
	if body.left == 0 && body.failed == nil {
		_, body.failed = r.proc.out.Discard(1)
	}
	if body.left == 0 && body.failed == nil {
		r.proc.asked = false
		return err
	}
	_, _ = r.drop(true)
	if r.ctx.Err() != nil {
		return fmt.Errorf("read object %s: %w", body.rev, context.Cause(r.ctx))
	}
	if err == nil {
		err = fmt.Errorf("read object %s: %w", body.rev, body.failed)
	}
	return err
}

// resolve returns the object that a revision names, "" if it names none.
func (r *reader) resolve(rev string) (OID, error) {
	if strings.ContainsAny(rev, " \t\r\n\x00") {
		return "", nil // no ref can be named so
	}
	h, err := r.ask("info", rev)
	if errors.Is(err, errMissing) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r.proc.asked = false
	return h.oid, nil
}

// header is the first line of an answer.
type header struct {
	oid  OID
	kind string
	size int64
}

// answer is the bytes of one object. An end that comes early is an error.
type answer struct {
	rev    string
	from   io.Reader
	left   int64
	failed error
}

func (a *answer) Read(b []byte) (int, error) {
	if a.failed != nil {
		return 0, a.failed
	}
	if a.left == 0 {
		return 0, io.EOF
	}
	n, err := a.from.Read(b[:min(int64(len(b)), a.left)])
	a.left -= int64(n)
	if err != nil && a.left > 0 {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		a.failed = err
		return n, err
	}
	return n, nil
}

// process is one `cat-file --batch-command`.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *os.File // in memory: nobody has to read it meanwhile, and what waits is a process alone
	asked  bool     // and not answered to the end
	ground *ground  // that it began on; nil = it is not to wait
}

// read starts one. It does not end with any context: its holder ends it.
func (d Dir) read(waits bool) (*process, error) {
	var at *ground
	if waits {
		at = standing(d) // before it begins, so that it has seen no less
	}
	fd, err := unix.MemfdCreate("complaints", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	stderr := os.NewFile(uintptr(fd), "complaints")
	cmd, _ := d.command(context.Background(), Cmd{Args: []string{"cat-file", "--batch-command"}})
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		stderr.Close()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stderr.Close()
		return nil, err
	}
	return &process{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 64<<10), stderr: stderr, ground: at}, nil
}

// complains reports whether a process has complained of so much that it is better ended.
func (p *process) complains() bool {
	fi, err := p.stderr.Stat()
	return err != nil || fi.Size() > complaintsMax
}

// complaintsMax is how many bytes a process that waits may have complained in.
const complaintsMax = 64 << 10

// put writes questions.
func (p *process) put(verb string, revs ...OID) error {
	var b strings.Builder
	for _, rev := range revs {
		b.WriteString(verb + " " + string(rev) + "\n")
	}
	p.asked = true
	_, err := io.WriteString(p.in, b.String())
	return err
}

// ask writes a question and reads the first line of its answer; errMissing leaves the process in step.
func (p *process) ask(verb, rev string) (header, error) {
	if err := p.put(verb, OID(rev)); err != nil {
		return header{}, err
	}
	return p.header()
}

// header reads the first line of an answer.
func (p *process) header() (h header, err error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		return h, err
	}
	fields := strings.Fields(line)
	if len(fields) != 3 || !OID(fields[0]).Valid() { // "REV missing" or "REV ambiguous"
		p.asked = false
		return h, errMissing
	}
	h.oid, h.kind = OID(fields[0]), fields[1]
	if h.size, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
		return h, fmt.Errorf("size %q: %w", fields[2], err)
	}
	return h, nil
}

// kill ends the process where it stands: it only reads, and holds no lock.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// end waits for its end, and tells how that was. One that has not died by itself has to be killed: it may have much to say.
func (p *process) end(kill bool) (stderr fmt.Stringer, err error) {
	p.in.Close()
	if kill {
		p.kill()
	}
	err = p.cmd.Wait()
	complaints := &tail{max: stderrMax}
	_, _ = io.Copy(complaints, io.NewSectionReader(p.stderr, 0, stderrMax))
	p.stderr.Close()
	return complaints, err
}

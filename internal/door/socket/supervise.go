package socket

import (
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
)

func (s *Server) tell(r *http.Request) (any, error) {
	ref, in, err := about[api.Tell](r)
	if err != nil {
		return nil, err
	}
	const next = "sallyport change tell --help"
	switch {
	case strings.TrimSpace(in.Text) == "":
		return nil, problem.Errorf(problem.Usage, next, "there is nothing to tell the agent of %s", ref)
	case len(in.Text) > request.TextBytesMax:
		return nil, problem.Errorf(problem.Usage, next, "the message to %s has %d bytes; at most %d are taken", ref, len(in.Text), request.TextBytesMax)
	case !utf8.ValidString(in.Text):
		return nil, problem.Errorf(problem.Usage, next, "the message to %s is not valid UTF-8", ref)
	}
	d, err := s.Verbs.Tell(r.Context(), ref, by(r), in.Text)
	if err != nil {
		return nil, err
	}
	return api.Delivery{Delivered: d.Delivered, Acknowledged: d.Acknowledged, AgentResponse: text(d.AgentResponse)}, nil
}

func (s *Server) putBack(r *http.Request) (any, error) {
	ref, in, err := about[api.PutBack](r)
	if err != nil {
		return nil, err
	}
	paths, err := named(in)
	if err != nil {
		return nil, err
	}
	done, err := s.Verbs.PutBack(r.Context(), ref, by(r), paths, in.Violating)
	if err != nil {
		return nil, err
	}
	return api.Returned{Checkpoint: checkpointOf(done.Checkpoint), Reverted: texts(done.Reverted), Kept: done.Kept}, nil
}

// named returns the paths that are to go back, cleaned; each lies in the repository.
func named(in api.PutBack) ([]string, error) {
	const next = "sallyport rollback --help"
	switch {
	case in.Violating && len(in.Paths) > 0:
		return nil, problem.Errorf(problem.Usage, next, "name files, or ask for those that break a rule; not both")
	case !in.Violating && len(in.Paths) == 0:
		return nil, problem.Errorf(problem.Usage, next, "no file is named")
	case len(in.Paths) > request.ListMax:
		return nil, problem.Errorf(problem.Usage, next, "%d files are named; at most %d are taken at once", len(in.Paths), request.ListMax)
	}
	var out []string
	for _, p := range in.Paths {
		clean := path.Clean(p)
		if p == "" || path.IsAbs(p) || strings.ContainsRune(p, 0) || slices.Contains(strings.Split(p, "/"), "..") || clean == "." {
			return nil, problem.Errorf(problem.Usage, next, "%q is not the path of a file from the top of the repository", p)
		}
		out = append(out, clean)
	}
	return out, nil
}

func (s *Server) restore(r *http.Request) (any, error) {
	ref, err := id.ParseCheckpoint(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c, err := s.Verbs.RestoreTo(r.Context(), ref, by(r))
	if err != nil {
		return nil, err
	}
	return checkpointOf(c), nil
}

func (s *Server) resumeSession(r *http.Request) (any, error) {
	ref, err := id.ParseSession(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var in api.Resume
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if err := interactive(in.ExecutionMode, "sallyport resume --help"); err != nil {
		return nil, err
	}
	row, err := s.Verbs.ResumeSession(r.Context(), ref, by(r), keysOf(in.Keys))
	if err != nil {
		return nil, err
	}
	return changeOf(row), nil
}

func (s *Server) redo(r *http.Request) (any, error) {
	ref, err := id.ParseChange(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var in api.Redo
	if err := read(r, &in); err != nil {
		return nil, err
	}
	row, err := s.Verbs.Redo(r.Context(), ref, by(r), keysOf(in.Keys))
	if err != nil {
		return nil, err
	}
	return changeOf(row), nil
}

func (s *Server) branch(r *http.Request) (any, error) {
	ref, err := id.ParseChange(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var in api.Branch
	if err := read(r, &in); err != nil {
		return nil, err
	}
	b, err := s.Verbs.Branch(r.Context(), ref, in.Name, by(r))
	if err != nil {
		return nil, err
	}
	return api.Branched{Name: text(b.Name), Commit: string(b.Commit)}, nil
}

func (s *Server) checkpointExport(r *http.Request) (any, error) {
	ref, err := id.ParseCheckpoint(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c, err := s.Verbs.Checkpoint(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	file, err := s.Host.Keep(r.Context(), c.Change, ref, func(w io.Writer) error {
		return s.Verbs.CheckpointExport(r.Context(), ref, w)
	})
	if err != nil {
		return nil, err
	}
	return api.Exported{Path: text(file)}, nil
}

// strategyOf reads --strategy as it crosses the socket.
func strategyOf(v string) (string, error) {
	switch session.Strategy(v) {
	case "", session.Direct, session.Shadow:
		return v, nil
	}
	return "", problem.Errorf(problem.Usage, "sallyport run --help", "strategy %q is none of %s, %s", v, session.Direct, session.Shadow)
}

// interactive refuses a mode that no agent of today has: a plain command, and a script that
// stands in for one, work on the files themselves (SV-001).
func interactive(mode, next string) error {
	switch mode {
	case "", api.Interactive:
		return nil
	case api.Deterministic:
		return problem.Errorf(problem.Usage, next, "the execution mode deterministic is refused: an agent or a command edits files as it works, and only the interactive mode can watch that")
	}
	return problem.Errorf(problem.Usage, next, "execution mode %q is none of %s, %s", mode, api.Deterministic, api.Interactive)
}

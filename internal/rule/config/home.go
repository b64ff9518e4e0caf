package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/right"
)

// Home is a home's configuration.
type Home struct {
	Sallyport Sallyport
	Rules     policy.Rules
	Approvals right.Rules
}

// LoadHome reads a home's files; one that is not there has its defaults. Errors:
// problem.Refused naming file, line and path; problem.Unavailable if one cannot be read.
func LoadHome(home string) (Home, error) {
	s, err := LoadSallyport(home)
	if err != nil {
		return Home{}, err
	}
	p, err := LoadPolicy(home)
	if err != nil {
		return Home{Sallyport: s}, err
	}
	return Home{Sallyport: s, Rules: p.Judgement(), Approvals: p.Approvals.Rules()}, nil
}

// LoadSallyport reads a home's sallyport.yaml alone, as it is now.
func LoadSallyport(home string) (Sallyport, error) {
	name := filepath.Join(home, SallyportFile)
	data, err := read(name)
	if err != nil {
		return Sallyport{}, err
	}
	return ParseSallyport(name, data)
}

// LoadPolicy reads a home's policy.yaml alone, as it is now.
func LoadPolicy(home string) (Policy, error) {
	name := filepath.Join(home, PolicyFile)
	data, err := read(name)
	if err != nil {
		return Policy{}, err
	}
	return ParsePolicy(name, data)
}

// EditPolicy is the command by which a person opens a home's policy.yaml.
func EditPolicy(home string) string { return edit(filepath.Join(home, PolicyFile)) }

// read returns a regular file's bytes, nil if there is none; one byte beyond the limit is enough to refuse it.
func read(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(filepath.Dir(name)), "read the configuration: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", name)
	}
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(filepath.Dir(name)), "read the configuration: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, FileBytesMax+1))
	if err != nil {
		return nil, problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(filepath.Dir(name)), "read the configuration: %w", err)
	}
	return data, nil
}

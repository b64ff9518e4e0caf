package api

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	host "sallyport/internal/port/tool"
)

// fit has a workshop serve an order: with the tools that the host has for it, and without those that are off.
func (w *workshop) fit(ctx context.Context, o agent.Order) (err error) {
	if o.Tools != "" {
		var more []tool
		if more, err = ofHost(ctx, o.Tools); err != nil {
			err = fmt.Errorf("the tools of the host cannot be used: %w", err)
		}
		w.tools = append(w.tools, more...)
	}
	w.tools = slices.DeleteFunc(w.tools, func(t tool) bool { return slices.Contains(o.Off, t.name) || slices.Contains(o.Denied, t.kind) })
	return err
}

// ofHost are the tools that the host says this session has.
func ofHost(ctx context.Context, socket string) (tools []tool, err error) {
	r, err := host.Ask(ctx, socket, host.Request{Verb: host.List})
	if err != nil {
		return nil, err
	}
	for _, name := range r.Tools {
		d, known := host.Find(name)
		if !known {
			return nil, problem.Errorf(problem.Internal, "", "the host names a tool that this program does not know: %q", name)
		}
		tools = append(tools, tool{
			name: string(name), kind: "other", about: d.Description, given: d.Schema,
			ask: func(ctx context.Context, args json.RawMessage) (string, error) {
				if _, err := d.Decode(args); err != nil { // so that it costs no call
					return "", err
				}
				r, err := host.Ask(ctx, socket, host.Request{Verb: name, Args: args})
				if err != nil {
					return "", err
				}
				text, err := json.Marshal(r)
				return string(text), err
			},
		})
	}
	return tools, nil
}

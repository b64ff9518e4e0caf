package authorship

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/port/agent"
	"sallyport/internal/store"
)

// signable says for a card how the commit will be signed, or what stands in the way: it is tried now, so that nobody finds out after
// their yes. Nothing is said where commits are not signed.
func (c Composer) signable(ctx context.Context, row change.Row, who git.Person) string {
	r := row.Request
	s, err := r.Project.Signing(ctx, row.Request.ConfigHome())
	if err == nil && s == nil {
		return ""
	}
	if err == nil {
		err = r.Project.TrySigning(ctx, c.Ops, *s, who)
	}
	if err != nil {
		return fmt.Sprintf("; IT CANNOT BE SIGNED, though commit.gpgsign wants it: %v. To land it unsigned: sallyport approve %s --unsigned",
			strings.Join(strings.Fields(err.Error()), " "), row.ID)
	}
	return ", signed (" + s.Format + ")"
}

// signing is how an approved commit is signed: nil if commits are not, or if who approved it lets it land unsigned.
func (c Composer) signing(ctx context.Context, row change.Row, yes approval.Approval) (*git.Signing, error) {
	if yes.Unsigned {
		return nil, nil
	}
	s, err := row.Request.Project.Signing(ctx, row.Request.ConfigHome())
	if err != nil {
		err = landing.Unsignable(row.ID, err)
	}
	return s, err
}

// person is who commits in a row's repository; note says why that is not what its configuration says. A configuration that cannot be
// read holds nothing up: the home's own name stands in, as it does where nobody is named.
func (c Composer) person(ctx context.Context, row change.Row) (who git.Person, note string) {
	who, err := row.Request.Project.Person(ctx, row.Request.ConfigHome())
	switch {
	case err != nil:
		who, note = git.Person{}, "because git config cannot be read: "+err.Error()
	case who.Author.Name == "" || who.Committer.Name == "":
		note = "because git config has no user.name and user.email here"
	}
	for _, s := range []*git.Signature{&who.Author, &who.Committer} {
		if s.Name == "" {
			*s = c.Author
		}
	}
	return who, note
}

// approver names who said yes, by the name and address that they commit with where that is known.
func approver(row change.Row, who git.Person, by audit.Actor) string {
	if by.UID == int(row.Request.Project.UID) && who.Committer.Name != "" {
		return who.Committer.Address()
	}
	return git.Signature{Name: by.Name, Email: by.Name + "@localhost"}.Address()
}

// agentAddress is where nothing can be sent to: .invalid is no domain (RFC 2606).
const agentAddress = "@agents.invalid"

// coAuthor names the agent that made a change, and the models that it used.
func (c Composer) coAuthor(ctx context.Context, row change.Row) (string, error) {
	r := row.Request
	name, _, _ := strings.Cut(r.Agent, ":") // acp:COMMAND
	shown := name
	switch command := strings.TrimSpace(strings.TrimPrefix(r.Agent, name+":")); {
	case r.Agent != name && command != "":
		shown = path.Base(strings.Fields(command)[0])
	case !agent.Named(r.Agent) && len(r.Argv) > 0:
		shown = path.Base(r.Argv[0])
	}
	models, err := c.models(ctx, row)
	if err != nil {
		return "", err
	}
	if models != "" {
		shown += " (" + models + ")"
	}
	return git.Signature{Name: shown, Email: name + agentAddress}.Address(), nil
}

// models are those that a change has asked, as their endpoints call them, or else the one that was wished for.
func (c Composer) models(ctx context.Context, row change.Row) (string, error) {
	var names []string
	err := c.DB.Read(ctx, func(tx store.Tx) error {
		uses, err := tx.Uses(ctx, row.ID.Subject())
		for _, u := range uses {
			if u.Model != "" && !slices.Contains(names, u.Model) {
				names = append(names, u.Model)
			}
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read which models %s used: %w", row.ID, err)
	}
	if len(names) == 0 && row.Request.Model != "" {
		names = []string{row.Request.Model}
	}
	return strings.Join(names, ", "), nil
}

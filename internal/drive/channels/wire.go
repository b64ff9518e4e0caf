package channels

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/wiring"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Wired is a conversation with the groups that hear it.
type Wired struct {
	conversation.Conversation
	Wirings []wiring.Wiring
}

// Broken returns why a wiring engages on nothing, by its group's folder.
func (w Wired) Broken() map[group.Folder]error {
	return wiring.Compile(w.Kind, w.Policy, w.Wirings).Broken()
}

// Wirings returns the conversations of a channel, or of all for "". Errors: problem.NotFound if there is no such channel.
func (p Places) Wirings(ctx context.Context, channel string) (all []Wired, err error) {
	err = p.DB.Read(ctx, func(tx store.Tx) error {
		all = nil
		channels, err := tx.Channels(ctx)
		if channel != "" && err == nil {
			var one conversation.Channel
			one, err = channelOf(ctx, tx, channel)
			channels = []conversation.Channel{one}
		}
		if err != nil {
			return err
		}
		for _, c := range channels {
			there, err := tx.Conversations(ctx, c.Name)
			if err != nil {
				return err
			}
			for _, where := range there {
				w := Wired{Conversation: where}
				if w.Wirings, err = tx.Wirings(ctx, where.ID); err != nil {
					return err
				}
				all = append(all, w)
			}
		}
		return nil
	})
	return all, err
}

// Wish is what a person says of a wiring. What is "" stays as it is, or is as the kind of the conversation wants it.
type Wish struct {
	Group   string
	Mode    wiring.Mode
	Pattern string
	Scope   wiring.Scope
	Ignored wiring.Ignored
}

// onto returns a wiring as it is wished.
func (n Wish) onto(w wiring.Wiring) wiring.Wiring {
	if n.Mode == "" && n.Pattern != "" {
		n.Mode = wiring.Pattern
	}
	if n.Mode != "" && n.Mode != w.Mode {
		w.Mode, w.Pattern = n.Mode, ""
	}
	w.Pattern = cmp.Or(n.Pattern, w.Pattern)
	w.Scope, w.Ignored = cmp.Or(n.Scope, w.Scope), cmp.Or(n.Ignored, w.Ignored)
	return w
}

// Wire has a group hear a conversation, from the next thing that is said there (CH-116). Errors: problem.Usage for what is no wiring;
// problem.NotFound.
func (p Places) Wire(ctx context.Context, of id.Conversation, n Wish, by audit.Actor) (w Wired, err error) {
	home, err := p.home(ctx)
	if err != nil {
		return w, err
	}
	g, err := knownGroup(home.Groups, n.Group)
	if err != nil {
		return w, err
	}
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		where, err := placeOf(ctx, tx, of)
		if err != nil {
			return err
		}
		there, err := tx.Wirings(ctx, of)
		if err != nil {
			return err
		}
		is := wiring.New(of, where.Kind, g, ledger.Now())
		if i := slices.IndexFunc(there, func(w wiring.Wiring) bool { return w.Group == g }); i >= 0 {
			is = there[i]
		}
		if w, err = putWiring(ctx, tx, where, n.onto(is), by); err != nil {
			return err
		}
		return usher{p.Channels}.settle(ctx, tx, is, home, by)
	})
	return w, err
}

// knownGroup refuses a group that there is not.
func knownGroup(groups []group.Folder, name string) (group.Folder, error) {
	g, err := group.ParseFolder(name)
	if err == nil && !slices.Contains(groups, g) {
		err = problem.Errorf(problem.NotFound, "sallyport group list", "there is no group %q", name)
	}
	return g, err
}

// Unwire has a group hear a conversation no more. Errors: problem.NotFound if it does not.
func (p Places) Unwire(ctx context.Context, of id.Conversation, name string, by audit.Actor) (w Wired, err error) {
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		if w.Conversation, err = placeOf(ctx, tx, of); err != nil {
			return err
		}
		there, err := tx.DropWiring(ctx, of, group.Folder(name))
		if err != nil {
			return err
		}
		if !there {
			return problem.Errorf(problem.NotFound, "sallyport wiring list", "the group %q does not hear %s", inert.Short(name, 40), of)
		}
		if w.Wirings, err = tx.Wirings(ctx, of); err != nil {
			return err
		}
		return noteWiring(ctx, tx, by, of, "unwired", "group %s", name)
	})
	return w, err
}

// SetPolicy says what becomes of strangers in a conversation. Errors: problem.Usage, problem.NotFound, problem.Denied.
func (p Places) SetPolicy(ctx context.Context, of id.Conversation, policy conversation.Policy, by audit.Actor) (w Wired, err error) {
	if !policy.Valid() {
		return w, problem.Errorf(problem.Usage, "sallyport wiring policy --help", "%q is no policy: strict, request_approval or public",
			inert.Short(string(policy), 40))
	}
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		if w.Conversation, err = placeOf(ctx, tx, of); err != nil {
			return err
		}
		if w.Wirings, err = tx.Wirings(ctx, of); err != nil {
			return err
		}
		if err := mayRule(ctx, tx, w, policy, by); err != nil {
			return err
		}
		if err := tx.SetPolicy(ctx, of, policy); err != nil {
			return err
		}
		w.Policy = policy
		return noteWiring(ctx, tx, by, of, "set policy", "strangers: %s", policy)
	})
	return w, err
}

// mayRule refuses who does not say what becomes of strangers in a conversation: its owner and global admins do, and who decides about each group
// that hears it. Who decides about one of them makes it strict (CH-112). Root reads the home's disk anyway.
func mayRule(ctx context.Context, tx store.Tx, w Wired, policy conversation.Policy, by audit.Actor) error {
	held, err := tx.Roles(ctx, by.Person)
	if root := by.Kind == "person" && by.UID == 0; err != nil || root || right.Decides(held, "") {
		return err
	}
	theirs := 0
	for _, is := range w.Wirings {
		if right.Decides(held, string(is.Group)) {
			theirs++
		}
	}
	switch {
	case theirs == 0:
		return problem.Errorf(problem.Denied, "sallyport wiring list", "no group that you decide about hears %s", w.ID)
	case theirs < len(w.Wirings) && policy != conversation.Strict:
		return problem.Errorf(problem.Denied, "sallyport wiring policy "+string(w.ID)+" strict",
			"%s is heard by groups that others decide about; you may make it strict", w.ID)
	}
	return nil
}

// OldRow is a wiring of older data.
type OldRow struct {
	wiring.Old
	Where string // an id of a conversation, or CHANNEL:ADDRESS
	Group string
}

// Import converts wirings of older data and stores all of them, or none if one is none (CH-005). Errors: problem.Usage and problem.NotFound,
// which name the row.
func (p Places) Import(ctx context.Context, rows []OldRow, by audit.Actor) (all []Wired, err error) {
	home, err := p.home(ctx)
	if err != nil {
		return nil, err
	}
	err = p.DB.InTx(ctx, func(tx store.Tx) error {
		all = nil
		var made []wiring.Wiring
		for i, row := range rows {
			w, g, err := importRow(ctx, tx, row, home.Groups, by)
			if err != nil {
				return fmt.Errorf("row %d: %w", i+1, err)
			}
			all = slices.DeleteFunc(all, func(o Wired) bool { return o.ID == w.ID })
			all, made = append(all, w), append(made, wiring.Wiring{Conversation: w.ID, Group: g})
		}
		for _, w := range made { // once all of them hear what was said
			if err := (usher{p.Channels}).settle(ctx, tx, w, home, by); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

func importRow(ctx context.Context, tx store.Tx, row OldRow, groups []group.Folder, by audit.Actor) (w Wired, g group.Folder, err error) {
	where, err := findPlace(ctx, tx, row.Where)
	if err != nil {
		return w, "", err
	}
	if g, err = knownGroup(groups, row.Group); err != nil {
		return w, "", err
	}
	is, ok := row.Convert(wiring.New(where.ID, where.Kind, g, ledger.Now()))
	if !ok {
		return w, "", problem.Errorf(problem.Usage, "sallyport wiring import --help",
			"response_scope %q with trigger_rules %q is no wiring: all, triggered or allowlisted, and a pattern or none",
			inert.Short(row.Scope, 40), inert.Short(row.Rules, 80))
	}
	w, err = putWiring(ctx, tx, where, is, by)
	return w, g, err
}

// findPlace finds a conversation by its id, or by its channel and address. One in which nothing was said yet is made; what kind it is the first
// words there tell.
func findPlace(ctx context.Context, tx store.Tx, name string) (conversation.Conversation, error) {
	if of, err := id.ParseConversation(name); err == nil {
		return placeOf(ctx, tx, of)
	}
	channel, address, _ := strings.Cut(name, ":")
	if _, err := channelOf(ctx, tx, channel); err != nil {
		return conversation.Conversation{}, err
	}
	there, err := tx.Conversations(ctx, channel)
	if err != nil {
		return conversation.Conversation{}, err
	}
	if i := slices.IndexFunc(there, func(c conversation.Conversation) bool { return c.Address == address }); i >= 0 {
		return there[i], nil
	}
	if address == "" || len(address) > addressMax || !utf8.ValidString(address) || strings.ContainsRune(address, 0) {
		return conversation.Conversation{}, problem.Errorf(problem.Usage, "sallyport wiring import --help", "%q is no place on %s",
			inert.Short(address, 80), channel)
	}
	return tx.PutConversation(ctx, conversation.Conversation{
		ID: id.NewConversation(), Platform: channel, Address: address, Kind: conversation.Group, Name: inert.Short(address, labelMax), Created: ledger.Now(),
	})
}

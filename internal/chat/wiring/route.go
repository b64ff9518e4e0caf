package wiring

import (
	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

// Said is what was said in a conversation, as routing sees it.
type Said struct {
	Text    string
	Mention bool                  // the platform says that the assistant's own account is meant
	Stuck   map[group.Folder]bool // groups that were mentioned in this thread before (CH-017)
	Account []string              // names of the assistant's account here
	Sender  Sender
}

// Sender is who said it, as they are at this moment.
type Sender struct {
	Person id.Person                   // "" = nobody knows them
	Groups map[group.Folder]right.Role // what they are in each: its member or its admin
	Over   bool                        // owner or global admin: of every group
}

// Known reports whether a group knows the sender.
func (s Sender) Known(g group.Folder) bool { return s.Over || s.Groups[g] != "" }

// stranger reports whether no group knows the sender.
func (s Sender) stranger() bool { return !s.Over && len(s.Groups) == 0 }

// admin reports whether the sender may wire the group.
func (s Sender) admin(g group.Folder) bool { return s.Over || s.Groups[g] == right.GroupAdmin }

// Home is what routing has to know of the home.
type Home struct {
	Open     bool           // permissions are switched off (CH-019, CH-059)
	Groups   []group.Folder // all that there are
	Approver bool           // somebody who may decide about strangers and places can be reached (CH-057, CH-069)
}

// Kind is what becomes of something that was said.
type Kind string

const (
	Heard     Kind = "heard"      // Outcomes says by whom, and how
	Dropped   Kind = "dropped"    // Reason says why; nothing of it is kept (CH-012, CH-009)
	AskSender Kind = "ask-sender" // somebody is asked whether the sender may talk with Group (CH-052)
	AskPlace  Kind = "ask-place"  // somebody is asked which group this conversation is for (CH-060)
	Wire      Kind = "wire"       // this conversation is for Group, without a question (CH-062)
)

// Verdict is what becomes of something that was said.
type Verdict struct {
	Kind     Kind
	Group    group.Folder
	Outcomes []Outcome // of Heard: one for each group that hears this conversation
	Reason   Reason    // of Dropped
}

// Outcome is what one group does with it.
type Outcome struct {
	Group  group.Folder
	Action Action
	Reason Reason
	Sticks bool // from now on, all that is said in this thread engages the group
}

// Action is what a group does with a message.
type Action string

const (
	Wake    Action = "wake"    // it is answered (CH-010)
	Context Action = "context" // it is kept for the next turn (CH-011)
	Ignore  Action = "ignore"  // nothing is kept (CH-012)
)

// Reason says why something was heard, or was not. Drops are counted by it (CH-906).
type Reason string

const (
	Matched      Reason = "the pattern matches"
	Mentioned    Reason = "the group is mentioned"
	InThread     Reason = "the group was mentioned in this thread"
	NoMatch      Reason = "the pattern does not match"
	NoMention    Reason = "the group is not mentioned"
	BadPattern   Reason = "the wiring's pattern is none"
	ScopeKnown   Reason = "the group listens to people it knows"
	NoGroup      Reason = "no group hears this conversation"
	NobodyHears  Reason = "no group engages on it"
	PolicyStrict Reason = "the sender is unknown, and the conversation is strict"
	NoApprover   Reason = "nobody who may decide about it can be reached"
	PlacePublic  Reason = "the conversation is public, and no group hears it"
)

// Gate reports whether something is passed on at all (CH-015): in a conversation with wirings what engages one, or what one keeps as
// context; in one without what is meant for the assistant.
func (p Place) Gate(s Said) bool {
	if len(p.heard) == 0 {
		return p.kind == conversation.Direct || s.mentioned("")
	}
	for _, l := range p.heard {
		if ok, _ := l.engages(s); ok || l.Ignored == Accumulate {
			return true
		}
	}
	return false
}

// mentioned reports whether the group is meant, or the assistant's account.
func (s Said) mentioned(g group.Folder) bool {
	return s.Mention || Mentions(s.Text, string(g)) || Mentions(s.Text, s.Account...)
}

// engages reports whether a group answers this, and why.
func (l listener) engages(s Said) (bool, Reason) {
	switch {
	case l.broken != nil:
		return false, BadPattern
	case l.Mode == Pattern:
		if l.matches == nil || l.matches.MatchString(s.Text) {
			return true, Matched
		}
		return false, NoMatch
	case s.mentioned(l.Group):
		return true, Mentioned
	case l.Mode == Sticky && s.Stuck[l.Group]:
		return true, InThread
	}
	return false, NoMention
}

// Route says what becomes of something that was said, in the order of CH-009: the conversation, its policy, and of each wiring its scope,
// its mode and what it does.
func (p Place) Route(s Said, h Home) Verdict {
	if !p.Gate(s) {
		if len(p.heard) == 0 {
			return Verdict{Kind: Dropped, Reason: NoGroup}
		}
		return Verdict{Kind: Dropped, Reason: NobodyHears}
	}
	if len(p.heard) == 0 {
		return p.unwired(s, h)
	}

	if v, stop := p.stranger(s, h); stop {
		return v
	}
	v := Verdict{Kind: Dropped, Reason: NobodyHears}
	for _, l := range p.heard {
		o := l.outcome(s, h)
		v.Outcomes = append(v.Outcomes, o)
		switch {
		case o.Action != Ignore:
			v.Kind, v.Reason = Heard, ""
		case v.Kind == Dropped && o.Reason == ScopeKnown:
			v.Reason = ScopeKnown
		}
	}
	return v
}

// unwired says what becomes of something that is said where no group listens.
func (p Place) unwired(s Said, h Home) Verdict {
	switch {
	case p.policy == conversation.Public:
		return Verdict{Kind: Dropped, Reason: PlacePublic}
	case len(h.Groups) == 1 && s.Sender.admin(h.Groups[0]):
		return Verdict{Kind: Wire, Group: h.Groups[0]}
	case p.policy != conversation.Request && s.Sender.stranger() && !h.Open:
		return Verdict{Kind: Dropped, Reason: PolicyStrict}
	case !h.Approver:
		return Verdict{Kind: Dropped, Reason: NoApprover}
	}
	return Verdict{Kind: AskPlace}
}

// stranger says what becomes of something that a sender says whom no group here knows; false if they may be heard.
func (p Place) stranger(s Said, h Home) (Verdict, bool) {
	var wants group.Folder // the first that would answer
	for _, l := range p.heard {
		if s.Sender.Known(l.Group) {
			return Verdict{}, false
		}
		if ok, _ := l.engages(s); ok && wants == "" {
			wants = l.Group
		}
	}
	switch {
	case h.Open || p.policy == conversation.Public:
		return Verdict{}, false
	case p.policy != conversation.Request:
		return Verdict{Kind: Dropped, Reason: PolicyStrict}, true
	case wants == "":
		return Verdict{Kind: Dropped, Reason: NobodyHears}, true
	case !h.Approver:
		return Verdict{Kind: Dropped, Reason: NoApprover}, true
	}
	return Verdict{Kind: AskSender, Group: wants}, true
}

// outcome says what one group does with it.
func (l listener) outcome(s Said, h Home) Outcome {
	o := Outcome{Group: l.Group, Action: Ignore}
	if l.Scope == Known && (h.Open || !s.Sender.Known(l.Group)) {
		o.Reason = ScopeKnown
		return o
	}

	ok, why := l.engages(s)
	switch o.Reason = why; {
	case ok:
		o.Action, o.Sticks = Wake, l.Mode == Sticky && why == Mentioned
	case l.Ignored == Accumulate:
		o.Action = Context
	}
	return o
}

package modeltest

import (
	"context"
	"fmt"
	"sync"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
)

// Play makes the agent behind an engine do scripted deeds, by way of its model: each time that it is prompted, it does the next of
// turns. Its words get a number, so that a request of a turn that is over takes nothing of the next. It serves
// agenttest.Engine, for engines whose agent asks s.
//
// A write takes whatever tool the agent has for it; Hang is an answer that never begins, Steered one that waits until the agent took words.
func Play(s *Server, e agent.Engine, turns [][]agenttest.Deed) agent.Engine {
	return &player{Engine: e, server: s, turns: turns}
}

type player struct {
	agent.Engine
	server *Server

	mu    sync.Mutex
	turns [][]agenttest.Deed
	taken int
}

func (p *player) Open(ctx context.Context, o agent.Order, last string, show agent.Show) (agent.Conversation, error) {
	talk, err := p.Engine.Open(ctx, o, last, show)
	if err != nil {
		return nil, err
	}
	return &played{Conversation: talk, player: p}, nil
}

// next takes the deeds of one prompt as answers of a model; gate opens with words in the middle of the turn.
func (p *player) next() (marker string, script []Turn, gate *Gate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gate = NewGate()
	p.taken++
	marker = fmt.Sprintf("(words %d)", p.taken)
	if len(p.turns) == 0 {
		return marker, nil, gate
	}
	deeds := p.turns[0]
	p.turns = p.turns[1:]
	ended := false
	for _, d := range deeds {
		turn := Say(d.Say)
		switch {
		case d.Write != "":
			turn = Do(Write(d.Write, d.Content))
		case d.Delete != "":
			turn = Do(Shell("rm -r " + quote(d.Delete)))
		case d.Hang:
			turn = Turn{Before: NewGate()}
		case d.Steered:
			// With a call, so that the agent asks again, whether the words came before this answer or after it.
			turn = Turn{Text: "I wait for words.", Calls: []Call{Shell("true")}, Middle: gate}
		case d.Fail != "":
			turn = Turn{Status: 401, Message: d.Fail, Times: 100}
		}
		ended = d.Say != ""
		script = append(script, turn)
	}
	if !ended {
		script = append(script, Say("That is all."))
	}
	return marker, script, gate
}

type played struct {
	agent.Conversation
	player *player

	mu   sync.Mutex
	gate *Gate
}

func (c *played) Prompt(ctx context.Context, text string) (string, error) {
	marker, script, gate := c.player.next()
	c.player.server.Converse(marker, script...)
	c.mu.Lock()
	c.gate = gate
	c.mu.Unlock()
	return c.Conversation.Prompt(ctx, text+" "+marker)
}

func (c *played) Steer(ctx context.Context, text string) bool {
	ok := c.Conversation.Steer(ctx, text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ok && c.gate != nil {
		c.gate.Open()
	}
	return ok
}

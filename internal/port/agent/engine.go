package agent

import (
	"context"
	"time"
)

// OpenMax is how long an agent's program may take until it takes words; then it has failed.
const OpenMax = 2 * time.Minute

// Engine is the inside of a driver: it starts the agent's own program and speaks with it. It runs in the sandbox.
type Engine interface {
	// Open makes the agent's files in its home folder, starts its program and brings it to where it takes words. With
	// o.Resumed it goes on with the session whose name is last, if the agent can: Conversation.Loaded says so.
	Open(ctx context.Context, o Order, last string, show Show) (Conversation, error)
}

// Conversation is one session of an agent.
type Conversation interface {
	// Session is the agent's own name of it, to go on from later; "" = it cannot, or has none before its first turn.
	Session() string
	// Loaded reports whether it goes on with what was said before.
	Loaded() bool
	// Prompt gives the agent words and waits until its turn is over. Ending ctx interrupts the turn as the agent's protocol
	// has it: the conversation goes on. Errors: the agent is gone, or its model gave up: one line for a person.
	Prompt(ctx context.Context, text string) (says string, err error)
	// Steer gives a working agent words in the middle of a turn; false if it takes none now.
	Steer(ctx context.Context, text string) bool
	// Close ends the agent's program and all that it started.
	Close() error
}

// Show tells a person what an agent does, as lines; it never blocks for long.
type Show interface {
	Say(text string)              // its words
	Think(text string)            // its thoughts, in short
	Tool(kind, title string)      // a tool call of which no more is known: read, edit, delete, move, search, execute, think, fetch, other
	Began(t Tool)                 // a tool call that lasts until Ended, or until the end of the turn
	Ended(id string, failed bool) // it is over; of one that has not begun it says nothing
	Note(text string)             // what the adapter itself has to tell
}

// Tool is a tool call that has begun.
type Tool struct {
	ID, Kind, Title string
	Name            string        // the agent's own of the tool; "" = it does not tell
	Timeout         time.Duration // how long it may take, as the agent has declared; 0 = it has not
}

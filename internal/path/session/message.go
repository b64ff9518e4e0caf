package session

import (
	"time"

	"sallyport/internal/rule/policy"
)

// What was done about a violation, as the agent is told.
const (
	ActionNone     = "none"
	ActionReverted = "reverted"
)

// Violated is the message that tells an agent which rules its work breaks (SV-072).
type Violated struct {
	Type         string             `json:"type"` // checkpoint_violation
	Severity     policy.Severity    `json:"severity"`
	CheckpointID string             `json:"checkpoint_id"`
	Timestamp    time.Time          `json:"timestamp"`
	Violations   []policy.Violation `json:"violations"` // inert; a secret is named by kind, file and line
	FilesChanged []string           `json:"files_changed"`
	ActionTaken  string             `json:"action_taken"` // none or reverted
	RequiresAck  bool               `json:"requires_acknowledgment"`
}

// Delivery says whether a message reached an agent, and what it said to it (SV-084).
type Delivery struct {
	Delivered     bool   `json:"delivered"`
	Acknowledged  bool   `json:"acknowledged"`
	AgentResponse string `json:"agent_response,omitempty"` // as the agent wrote it: escape it before it is shown

	Refused bool      `json:"-"` // it was answered that the agent takes nothing now (Steer)
	At      time.Time `json:"-"` // when words were answered; the zero time if they were not
}

// Answer says whether an agent answered a pause (SV-084).
type Answer struct {
	Acknowledged bool  `json:"acknowledged"`
	Timeout      bool  `json:"timeout"`
	LatencyMS    int64 `json:"latency_ms"`
}

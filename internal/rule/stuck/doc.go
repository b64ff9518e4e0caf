// Package stuck tells an agent that hangs from one that is only quiet, and says what becomes of the messages that it had.
//
// Silence is no fault: a tool may run for hours and a model may think. So a session is stuck only when nothing explains its silence:
// no event of its agent, no tool within its budget, no request open at its egress door. The host sees each of these by itself.
//
// Ages are taken on a clock that nobody can set and that stands still while the machine sleeps (CLOCK_MONOTONIC, as Go's own
// time.Since has it), so a clock that is set and a laptop that was shut kill nobody. That clock begins anew at each boot; a
// session does not outlive its host, so neither does an age. Only the moment at which a message is due again is wall clock.
//
// It stands among the rules as it says how much silence is allowed and decides on rows alone; chat tells the agent the same
// numbers, and drive carries out what is decided here.
package stuck

package keeper

import "time"

// How long a trial and its parts take at the most.
const (
	trialMin  = 2 * time.Minute  // from the start, and once more from the asking (SM-108, SM-125)
	trialMax  = 10 * time.Minute // no deadline passes that (SM-126)
	probeMax  = time.Minute      // from a start until ready, with the record's slack beside it
	quietMax  = 30 * time.Second // between two beats, hearMax included
	triesMax  = 5                // wrong codes
	startsMax = 3                // of an old daemon that dies at step Armed
)

// event is what may come to pass while a host change is under way.
type event string

const (
	begun      event = "begun"      // no daemon runs, and none has ended unasked: a keeper starts, or has ended the daemon itself
	exited     event = "exited"     // the daemon ended unasked. With which status says nothing
	exhausted  event = "exhausted"  // the old daemon has done so startsMax times
	answered   event = "answered"   // it is ready
	handedOver event = "handedOver" // the old daemon gives the home away
	delivered  event = "delivered"  // message 1 is
	confirmed  event = "confirmed"  // the code was right
	finalized  event = "finalized"  // the change has come to its end in the database, too
	failed     event = "failed"     // deadline, silence, disk, wrong codes, a person: back
)

// deed is what a keeper does once the step is written.
type deed int

const (
	wait    deed = iota // nothing: the daemon runs on
	runOld              // starts the old release
	runNew              // starts the new one
	leave               // lets the old daemon end, and starts the new release then
	restart             // stops the daemon, and starts it again
	goBack              // ends the daemon, reverts, and starts the old release
	finish              // removes the record
)

// move is what an event leads to.
type move struct {
	to   Step // written first
	does deed
}

// moves is the whole machine. A pair that is not here changes nothing: who says such a word is refused.
//
// Only a confirmed version stays: from Handed to Asked each end of the daemon but the keeper's own leads back. What begins after the
// keeper itself has died goes on with the time that is left.
var moves = map[Step]map[event]move{
	Armed: {
		begun:      {Armed, runOld},
		exited:     {Armed, runOld}, // its landing recovery finishes and hands over, or undoes and disarms
		exhausted:  {Back, goBack},
		answered:   {Armed, wait},
		handedOver: {Handed, leave},
		failed:     {Back, goBack},
	},
	Handed: {
		begun:      {Handed, runNew},
		handedOver: {Handed, leave}, // said again
		answered:   {ReadyOnce, restart},
		exited:     {Back, goBack},
		failed:     {Back, goBack},
	},
	ReadyOnce: {
		begun:    {ReadyOnce, runNew},
		answered: {Ready, wait},
		exited:   {Back, goBack},
		failed:   {Back, goBack},
	},
	Ready: {
		begun:     {Ready, runNew},
		answered:  {Ready, wait},
		delivered: {Asked, wait},
		confirmed: {Confirmed, wait}, // the code was given before message 1
		exited:    {Back, goBack},
		failed:    {Back, goBack},
	},
	Asked: {
		begun:     {Asked, runNew},
		answered:  {Asked, wait},
		delivered: {Asked, wait}, // once: the deadline stays
		confirmed: {Confirmed, wait},
		exited:    {Back, goBack},
		failed:    {Back, goBack},
	},
	Confirmed: {
		begun:     {Confirmed, runNew},
		exited:    {Confirmed, runNew},
		answered:  {Confirmed, wait},
		confirmed: {Confirmed, wait},
		finalized: {"", finish},
	},
	Back: {
		begun:    {Back, goBack},
		exited:   {Back, goBack},
		answered: {"", finish},
		failed:   {Back, wait}, // it does already
	},
}

// next returns what an event leads to; false where a step does not know it.
func (s Step) next(e event) (move, bool) {
	m, known := moves[s][e]
	return m, known
}

// onTrial reports whether the new version runs, or is about to, and nobody has confirmed it.
func (s Step) onTrial() bool {
	return s == Handed || s == ReadyOnce || s == Ready || s == Asked
}

// kept reports whether the keeper alone writes the record.
func (s Step) kept() bool { return s != "" && s != Armed }

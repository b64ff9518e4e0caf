package sqlite

import "sallyport/internal/store"

// tx is what store.Tx asks, noun by noun: each type holds the rows of one noun, in its own file.
type tx struct {
	*queries
	persons
	entries
	leases
	changes
	sessions
	asked
	usage
	checkpoints
	proposals
	questions
	approvals
	landings
	trials
	trusts
	conversations
	wirings
	messages
}

var _ store.Tx = (*tx)(nil)

// newTx lets every noun run its statements on q. A noun that is left out here does not compile.
func newTx(q *queries) *tx {
	return &tx{
		q, persons{q}, entries{q}, leases{q},
		changes{q}, sessions{q}, asked{q}, usage{q}, checkpoints{q},
		proposals{q}, questions{q}, approvals{q}, landings{q}, trials{q}, trusts{q},
		conversations{q}, wirings{q}, messages{q},
	}
}

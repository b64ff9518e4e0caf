// Package change is the one aggregate: its row, its states, the table of its moves, and the feed that tells of them.
//
// What moves it stands in drive; what keeps it is the transaction that store embeds.
package change

package sqlite

// Migrations are this program's, and OpenWith opens a database with others; Blanks is what a rehearsal may read.
var (
	Migrations = migrations
	OpenWith   = openWith
	Blanks     = blanks
)

// Stays is the way of a column that a rehearsal may read.
const Stays = stays

// Carried are the tables whose rows a way back carries over.
func Carried() (tables []string) {
	for _, t := range carried {
		tables = append(tables, t.table)
	}
	return tables
}

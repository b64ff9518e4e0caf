package sqlite

// Migrations are this program's, and OpenWith opens a database with others.
var (
	Migrations = migrations
	OpenWith   = openWith
)

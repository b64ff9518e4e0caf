package sqlite

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

func encode(v any) (string, error) {
	raw, err := json.Marshal(v)
	return string(raw), err
}

func decode[T any](raw string) (T, error) {
	var v T
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		return v, fmt.Errorf("read a stored %T: %w", v, err)
	}
	return v, nil
}

// encodeMaybe is encode of what may be missing: NULL.
func encodeMaybe[T any](v *T) (n sql.NullString, err error) {
	if v != nil {
		n.Valid = true
		n.String, err = encode(v)
	}
	return n, err
}

// decodeMaybe is the way back from encodeMaybe.
func decodeMaybe[T any](n sql.NullString) (*T, error) {
	if !n.Valid {
		return nil, nil
	}
	v, err := decode[T](n.String)
	return &v, err
}

// ms is a time as it is stored: whole milliseconds UTC, the zero time as NULL.
func ms(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

// whenever is the time that may have come.
func whenever(t *time.Time) sql.NullInt64 {
	if t == nil {
		return sql.NullInt64{}
	}
	return ms(*t)
}

// maybe is the way back from whenever.
func maybe(n sql.NullInt64) *time.Time {
	if !n.Valid {
		return nil
	}
	at := clock(n)
	return &at
}

// clock is the way back from ms.
func clock(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMilli(n.Int64).UTC()
}

// plain is a text as it may stand in a column.
func plain(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

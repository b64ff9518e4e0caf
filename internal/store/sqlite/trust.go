package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sallyport/internal/base/problem"
	"sallyport/internal/rule/trust"
)

// trusts are the words of repositories that the owner has said yes to.
type trusts struct{ *queries }

// PutTrust stores the trust in a repository's words, in the place of any earlier one.
func (t trusts) PutTrust(ctx context.Context, tr trust.Trust) error {
	what := fmt.Sprintf("store the trust in the target of %q", tr.Repository)
	if tr.Digest != tr.Words.Digest() {
		return problem.Errorf(problem.Internal, "", "%s: the digest is not that of the words", what)
	}
	if err := exact(what, tr); err != nil {
		return err
	}
	words, err := encode(tr.Words)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, err = t.write(ctx, "put-trust", `INSERT INTO trust (repository, digest, words, by_name, by_uid, at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (repository) DO UPDATE SET digest = excluded.digest, words = excluded.words, by_name = excluded.by_name, by_uid = excluded.by_uid, at = excluded.at`,
		tr.Repository, tr.Digest, words, tr.By, tr.UID, ms(tr.At))
	return doing(err, "%s", what)
}

// Trust returns a repository's; false if nothing of it is trusted.
func (t trusts) Trust(ctx context.Context, repository string) (trust.Trust, bool, error) {
	tr := trust.Trust{Repository: repository}
	what := fmt.Sprintf("read the trust in the target of %q", repository)
	var words string
	var at sql.NullInt64
	ok, err := t.one(ctx, `SELECT digest, words, by_name, by_uid, at FROM trust WHERE repository = ?`, []any{repository}, &tr.Digest,
		&words, &tr.By, &tr.UID, &at)
	if err != nil || !ok {
		if err != nil {
			err = fmt.Errorf("%s: %w", what, err)
		}
		return trust.Trust{}, false, err
	}
	if tr.Words, err = decode[trust.Target](words); err != nil {
		return trust.Trust{}, false, fmt.Errorf("%s: %w", what, err)
	}
	tr.At = clock(at)
	return tr, true, nil
}

// DropTrust takes a repository's trust back; false if there was none.
func (t trusts) DropTrust(ctx context.Context, repository string) (bool, error) {
	n, err := t.write(ctx, "drop-trust", `DELETE FROM trust WHERE repository = ?`, repository)
	return n == 1, doing(err, "take back the trust in the target of %q", repository)
}

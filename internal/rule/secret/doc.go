// Package secret finds secrets and keeps them from being shown.
//
// A Scanner looks through the files of a change at every door: with rules of its own (CW-023, CW-027) and with those of gitleaks,
// in text and bytes, in what is encoded in base64 or hex, in text of two bytes a letter, in archives, in paths
// and in the targets of symlinks. It is closed: what is too large, too deep, too slow or packed in a way that
// is not known is an error that names the file, never clean. PathRule knows the paths that hold secrets by custom (CW-022).
// What excuses a finding, `.gitleaks.toml`, `.gitleaksignore` and `gitleaks:allow`, counts only as it stands at the base.
//
// A Finding holds nothing of the secret (CW-024). A Redactor takes secrets out of text that goes out (CW-028). A Value is
// a secret that no print shows.
//
// Not looked into: what is compressed inside a format that is no archive (the streams of a PDF or an image, bare zlib), text
// in other encodings than these (base32, percent signs, \u escapes, base64 within itself more than a few times), a secret that
// is put together from several strings, and what is encrypted but does not say so. In a file with zero bytes, which is
// a binary, only runs of readable bytes are searched.
//
// docs: docs/decisions.md
package secret

package secret

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Unpack limits what archives may cost. Whatever goes beyond is not scanned, which is an error that names the archive.
type Unpack struct {
	BytesMax int64 // unpacked, all of one blob together; 64 MiB if 0
	FilesMax int   // 2,000 if 0
	DepthMax int   // archives within archives; 3 if 0; less than 0: archives are refused
}

func (u Unpack) orDefault() Unpack {
	if u.BytesMax == 0 {
		u.BytesMax = 64 << 20
	}
	if u.FilesMax == 0 {
		u.FilesMax = 2000
	}
	if u.DepthMax == 0 {
		u.DepthMax = 3
	}
	return u
}

type unpacked struct {
	bytes int64
	files int
}

// archive is a form that bytes are packed in.
type archive string

const (
	plain   archive = ""
	zipped  archive = "zip"
	gzipped archive = "gzip"
	bzipped archive = "bzip2"
	tarred  archive = "tar"
	sealed  archive = "sealed" // compressed in a way that is not read here
)

// seals are how files begin whose content cannot be seen here.
var seals = []string{
	"\xfd7zXZ\x00", "7z\xbc\xaf\x27\x1c", "\x28\xb5\x2f\xfd", "Rar!\x1a\x07", "\x04\x22\x4d\x18", "\x1f\x9d", "\x1f\xa0",
	"MSCF\x00", "!<arch>\ndebian-binary", "\xed\xab\xee\xdb", "hsqs", "LZIP", "\x5d\x00\x00", "xar!",
}

// packedNames are ends of names that promise an archive: if the content is no archive that is known here and no text, it is refused.
var packedNames = []string{
	".zip", ".jar", ".war", ".ear", ".aar", ".apk", ".ipa", ".whl", ".egg", ".nupkg", ".vsix", ".xpi", ".crx", ".docx", ".xlsx", ".pptx",
	".odt", ".ods", ".odp",
	".tar", ".gz", ".tgz", ".bz2", ".tbz", ".tbz2", ".gem", ".crate", ".xz", ".txz", ".7z", ".rar", ".zst", ".tzst", ".lz", ".lz4", ".lzma", ".z", ".cab",
	".deb", ".rpm", ".iso", ".dmg", ".img", ".msi", ".pkg", ".squashfs", ".cpio", ".br", ".sz",
}

// kindOf says what content is packed as.
func kindOf(name string, content []byte) archive {
	has := func(start string) bool { return bytes.HasPrefix(content, []byte(start)) }
	switch {
	case has("PK\x03\x04"), has("PK\x05\x06"), has("PK\x07\x08"):
		return zipped
	case has("\x1f\x8b"):
		return gzipped
	case has("BZh") && len(content) > 10 && (string(content[4:10]) == "1AY&SY" || string(content[4:10]) == "\x17rE8P\x90"):
		return bzipped
	case len(content) > 262 && string(content[257:262]) == "ustar":
		return tarred
	}
	for _, s := range seals {
		if has(s) {
			return sealed
		}
	}
	lower := strings.ToLower(path.Base(name))
	promised := slices.ContainsFunc(packedNames, func(end string) bool { return strings.HasSuffix(lower, end) })
	switch {
	case promised && bytes.Contains(content, []byte("PK\x05\x06")):
		return zipped // behind a program that unpacks it
	case promised && len(content) > 0 && !(utf8.Valid(content) && bytes.IndexByte(content, 0) < 0):
		return sealed
	}
	return plain
}

// unpack scans what is packed in content; depth counts archives within archives, from 1.
func (j *job) unpack(name string, content []byte, depth int) error {
	kind := kindOf(name, content)
	if kind == plain {
		return nil
	}
	if kind == sealed {
		return j.fail("it is an archive of a kind that the scan cannot open")
	}
	if depth > j.scanner.cfg.Unpack.DepthMax {
		return j.fail("it nests archives more than %d deep", max(j.scanner.cfg.Unpack.DepthMax, 0))
	}
	var err error
	switch kind {
	case zipped:
		err = j.unzip(content, depth)
	case tarred:
		err = j.untar(content, depth)
	case gzipped:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(content)); err == nil {
			inner := r.Name
			if inner == "" {
				inner = innerName(name)
			}
			if err = j.member(inner, r, depth); err == nil && r.Comment != "" {
				err = j.member("comment", strings.NewReader(r.Comment), depth)
			}
		}
	case bzipped:
		err = j.member(innerName(name), bzip2.NewReader(bytes.NewReader(content)), depth)
	}
	var already *NotScanned
	switch {
	case err == nil || errors.As(err, &already) || errors.Is(err, errCrowded) || j.ctx.Err() != nil:
		return err
	}
	return &NotScanned{File: j.file, Reason: "it is a " + string(kind) + " archive that the scan cannot read", cause: err}
}

// innerName is a compressed file's name without the compression's ending.
func innerName(name string) string {
	base := path.Base(name)
	switch end := path.Ext(base); strings.ToLower(end) {
	case ".tgz", ".tbz", ".tbz2":
		return strings.TrimSuffix(base, end) + ".tar"
	case ".gz", ".bz2":
		return strings.TrimSuffix(base, end)
	}
	return base + "-content"
}

func (j *job) unzip(content []byte, depth int) error {
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	if err := j.texts(z.Comment); err != nil {
		return err
	}
	for _, f := range z.File {
		if f.Flags&1 != 0 {
			return j.fail("it is a zip archive with encrypted members")
		}
		if err := j.texts(f.Comment); err != nil {
			return err
		}
		if strings.HasSuffix(f.Name, "/") && f.UncompressedSize64 == 0 {
			leave, err := j.enter(f.Name)
			if err != nil {
				return err
			}
			leave()
			continue
		}
		r, err := f.Open()
		if err != nil {
			return err
		}
		err = j.member(f.Name, r, depth)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) untar(content []byte, depth int) error {
	t := tar.NewReader(bytes.NewReader(content))
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return err
		}
		if err := j.texts(h.Linkname); err != nil {
			return err
		}
		if err := j.member(h.Name, t, depth); err != nil {
			return err
		}
	}
}

// texts scans what an archive says beside its members.
func (j *job) texts(text string) error {
	if text == "" {
		return nil
	}
	hits, err := j.scanner.inspect(j.ctx, "", text)
	for i := range hits {
		hits[i].line = 0
	}
	j.report(hits)
	return err
}

// enter judges the name of something in an archive; until leave, findings name it.
func (j *job) enter(name string) (leave func(), err error) {
	outer := j.file
	j.unpacked.files++
	if j.unpacked.files > j.scanner.cfg.Unpack.FilesMax {
		return nil, j.fail("it unpacks to more than %d files", j.scanner.cfg.Unpack.FilesMax)
	}
	found := len(j.findings)
	inner, err := j.path(name)
	if err != nil {
		return nil, err
	}
	j.file = outer + "!" + inner
	for i := found; i < len(j.findings); i++ {
		j.findings[i].File = j.file
	}
	if rule, blocked := PathRule(name); blocked {
		j.note(Finding{Rule: "path " + rule, File: j.file, Severity: Critical}, name)
	}
	return func() { j.file = outer }, nil
}

// member scans one file of an archive.
func (j *job) member(name string, r io.Reader, depth int) error {
	if j.ctx.Err() != nil {
		return context.Cause(j.ctx)
	}
	leave, err := j.enter(name)
	if err != nil {
		return err
	}
	defer leave()
	left := j.scanner.cfg.Unpack.BytesMax - j.unpacked.bytes
	content, err := io.ReadAll(io.LimitReader(r, left+1))
	if err != nil {
		return err
	}
	j.unpacked.bytes += int64(len(content))
	if int64(len(content)) > left {
		return j.fail("it unpacks to more than %d bytes", j.scanner.cfg.Unpack.BytesMax)
	}
	hits, err := j.scanner.inspect(j.ctx, name, string(content))
	if err != nil {
		return err
	}
	j.report(hits)
	return j.unpack(name, content, depth+1)
}

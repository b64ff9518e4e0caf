package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"sync"
	"time"
)

// Lives of certificates: that of an authority is longer than any daemon's, that of a leaf than any session's.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 30 * 24 * time.Hour
	leafRenewal   = leafLife / 2
	clockSlack    = 24 * time.Hour
	leavesMax     = 1000
)

// Authority signs what an inspected host shows to the inside. It lives in memory, as long as its daemon: its key is written nowhere.
type Authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the egress authority's key: %w", err)
	}
	subject := pkix.Name{CommonName: "sallyport egress (this machine, in memory)"}
	cert, err := sign(&x509.Certificate{Subject: subject, NotAfter: time.Now().Add(authorityLife), IsCA: true, MaxPathLenZero: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, key, key)
	if err != nil {
		return nil, fmt.Errorf("make the egress authority: %w", err)
	}
	return &Authority{cert: cert, key: key, leaves: map[string]*tls.Certificate{}}, nil
}

// sign makes a certificate; parent nil signs itself.
func sign(c, parent *x509.Certificate, of, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	c.SerialNumber, c.NotBefore = serial, time.Now().Add(-clockSlack)
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &of.PublicKey, by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// leaf is the certificate that a session is shown for a host.
func (a *Authority) leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.leaves[host]; l != nil && time.Until(l.Leaf.NotAfter) > leafRenewal {
		return l, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert, err := sign(&x509.Certificate{Subject: pkix.Name{CommonName: cut(host, 64)}, DNSNames: []string{host}, NotAfter: time.Now().Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, a.cert, key, a.key)
	if err != nil {
		return nil, err
	}
	if len(a.leaves) >= leavesMax {
		clear(a.leaves)
	}
	l := &tls.Certificate{Certificate: [][]byte{cert.Raw, a.cert.Raw}, PrivateKey: key, Leaf: cert}
	a.leaves[host] = l
	return l, nil
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// rootFiles are where distributions keep the authorities that a machine trusts, in one file.
var rootFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Arch, Alpine
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem", // openSUSE
	"/etc/ssl/cert.pem",
}

// Bundle is what a session trusts: the authorities of this machine and this one. A machine without any gives this one alone.
func (a *Authority) Bundle() []byte {
	for _, file := range append([]string{os.Getenv("SSL_CERT_FILE")}, rootFiles...) {
		if roots, err := os.ReadFile(file); err == nil && len(roots) > 0 {
			return append(append(roots, '\n'), a.PEM()...)
		}
	}
	return a.PEM()
}

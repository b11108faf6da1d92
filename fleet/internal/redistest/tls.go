package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// certify writes a certificate for 127.0.0.1 and its key to the server's folder,
// and returns a config that trusts it.
func (s *Server) certify() *tls.Config {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	s.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(crand.Reader, template, template, key.Public(), key)
	s.must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	s.must(err)
	s.write("cert", pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	s.write("key", pem.Block{Type: "PRIVATE KEY", Bytes: private})

	parsed, err := x509.ParseCertificate(certificate)
	s.must(err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func (s *Server) write(name string, block pem.Block) {
	s.t.Helper()
	s.must(os.WriteFile(s.filePath(name), pem.EncodeToMemory(&block), 0o600))
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}

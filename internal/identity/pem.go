package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"atoll/quorum"
)

const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY" // PKCS #8
)

// parseBlocks reads a file that holds 1 to limit PEM blocks of one type and,
// but for text in front, nothing else. What was cut off in the middle of a
// block is an error, never a shorter list.
func parseBlocks(data []byte, kind string, limit int) ([][]byte, error) {
	var all [][]byte
	for {
		block, rest := pem.Decode(data)
		switch {
		case block == nil && bytes.Contains(data, []byte("-----BEGIN")):
			return nil, errors.New("is cut off or garbled: a PEM block begins and doesn't end")
		case block == nil && len(all) == 0:
			return nil, fmt.Errorf("holds no PEM block of type %s", kind)
		case block == nil && len(bytes.TrimSpace(data)) > 0:
			return nil, errors.New("has something behind its last PEM block")
		case block == nil:
			return all, nil
		case block.Type != kind:
			return nil, fmt.Errorf("holds a PEM block of type %.40q, not %s", block.Type, kind)
		case len(all) == limit:
			return nil, fmt.Errorf("holds more than %d PEM blocks", limit)
		}
		all, data = append(all, block.Bytes), rest
	}
}

func parseKey(data []byte) (ed25519.PrivateKey, error) {
	blocks, err := parseBlocks(data, keyBlock, 1)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(blocks[0])
	if err != nil {
		return nil, errors.New("is garbled: no key in its PEM block") // never the bytes of a key in an error
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("holds a key of type %T, not Ed25519", key)
	}
	return private, nil
}

func encodeKey(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// parseCertificate reads a certificate and who holds it.
func parseCertificate(data []byte) (*x509.Certificate, Peer, error) {
	blocks, err := parseBlocks(data, certificateBlock, 1)
	if err != nil {
		return nil, Peer{}, err
	}
	cert, err := x509.ParseCertificate(blocks[0])
	if err != nil {
		return nil, Peer{}, fmt.Errorf("is garbled: %w", err)
	}
	p, err := holder(cert)
	if err != nil {
		return nil, Peer{}, fmt.Errorf("is not a certificate of ours: %w", err)
	}
	return cert, p, nil
}

// parseCAs reads the CA certificates of one cluster.
func parseCAs(data []byte) ([]*x509.Certificate, quorum.ClusterID, error) {
	blocks, err := parseBlocks(data, certificateBlock, MaxCAs)
	if err != nil {
		return nil, "", err
	}
	var all []*x509.Certificate
	var cluster quorum.ClusterID
	for _, der := range blocks {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, "", fmt.Errorf("is garbled: %w", err)
		}
		id, err := holderOfCA(cert)
		if err != nil {
			return nil, "", fmt.Errorf("is not a CA's certificate: %w", err)
		}
		if len(all) > 0 && id != cluster {
			return nil, "", fmt.Errorf("holds CAs of two clusters, %s and %s", cluster, id)
		}
		all, cluster = append(all, cert), id
	}
	return all, cluster, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})
}

package identity

import (
	"errors"
	"fmt"
	"io/fs"

	"atoll/quorum"
)

// Context is a context file: all that a client needs to reach a cluster. It
// holds a private key, and is as secret as that.
type Context struct {
	Format  int              `json:"format"`
	Cluster quorum.ClusterID `json:"cluster"`
	// Endpoints are the addresses to try at first.
	Endpoints []string `json:"endpoints"`
	// CA, Certificate and Key are PEM.
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`

	// Warnings are what a person should know about the file that was loaded.
	Warnings []string `json:"-"`
}

// Credentials returns the credentials in c. Its errors are *CredentialError.
func (c Context) Credentials() (*Credentials, error) {
	return ParseCredentials([]byte(c.CA), []byte(c.Certificate), []byte(c.Key))
}

// ParseContext reads and checks the bytes of a context file, but not the dates
// of its certificate. Its errors are worded to follow the file's name, and
// wrap a *CredentialError if it is the credentials that are wrong.
func ParseContext(data []byte) (Context, error) {
	var c Context
	if err := decodeJSON(data, contextFormat, &c); err != nil {
		return Context{}, err
	}
	if err := c.check(); err != nil {
		return Context{}, fmt.Errorf("is not as expected: %w", err)
	}
	return c, nil
}

func (c Context) check() error {
	if _, err := ParseClusterID(string(c.Cluster)); err != nil {
		return err
	}
	if len(c.Endpoints) == 0 || len(c.Endpoints) > MaxEndpoints {
		return fmt.Errorf("a context has 1 to %d endpoints, not %d", MaxEndpoints, len(c.Endpoints))
	}
	for _, e := range c.Endpoints { // people edit these: any spelling will do
		if _, err := ParseEndpoint(e); err != nil {
			return err
		}
	}
	credentials, err := c.Credentials()
	if err != nil {
		return err
	}
	if id := credentials.Cluster(); id != c.Cluster {
		return &CredentialError{Part: PartCertificate, Which: OtherCluster,
			Detail: fmt.Sprintf("it is of cluster %s, the context of cluster %s", id, c.Cluster)}
	}
	return nil
}

// LoadContext reads a context file. Its errors are *ContextError.
func LoadContext(path string) (Context, error) {
	data, err := readFile(path)
	if err != nil {
		return Context{}, contextError(path, err)
	}
	c, err := ParseContext(data)
	if err != nil {
		return Context{}, &ContextError{File: path, Problem: err.Error(), Err: err,
			WayOut: "take the client.json that init wrote, or another one of this cluster"}
	}
	if readableByOthers(path) {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s holds a private key and other users can read it: chmod 600 %[1]s", path))
	}
	return c, nil
}

func contextError(path string, err error) error {
	e := &ContextError{File: path, Err: err, Problem: "can't be read: " + reason(err), WayOut: "give a readable file"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Problem, e.WayOut = "doesn't exist", "give the path of the client.json that init wrote, or of a copy"
	case errors.Is(err, fs.ErrPermission):
		e.Problem, e.WayOut = "may not be read", "run as the user that owns it, or give that user a copy (mode 0600)"
	case errors.Is(err, errTooLarge):
		e.Problem, e.WayOut = err.Error(), "give a context file"
	}
	return e
}

// SaveContext writes a context file, mode 0600, all or nothing. It replaces
// one that is there. The folder must exist.
func SaveContext(path string, c Context) error {
	c.Format = contextFormat
	if err := c.check(); err != nil {
		return err
	}
	data, err := encodeJSON(c)
	if err == nil {
		err = replaceFile(path, data, secretMode)
	}
	if err != nil {
		return &ContextError{File: path, Problem: "can't be written: " + reason(err), WayOut: "give a path in a folder that can be written to", Err: err}
	}
	return nil
}

// reason is the system's reason without the path, which our errors name
// themselves.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

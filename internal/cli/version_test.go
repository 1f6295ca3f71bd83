package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"atoll/internal/cli"
)

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	app := cli.App("app", "try things", cli.Version("app"))
	app.Writer = &out
	if code := cli.RunContext(context.Background(), app, []string{"app", "version", "-o", "json"}); code != cli.ExitDone {
		t.Fatalf("exit %d", code)
	}
	var got struct {
		Version, Commit, Go string
		Wire                []string `json:"wire_versions"`
		Storage             int      `json:"storage_format"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version == "" || got.Commit == "" || got.Go == "" || len(got.Wire) == 0 || got.Storage < 1 {
		t.Errorf("version -o json prints %s", out.Bytes())
	}
}

package admin_test

import (
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

var update = flag.Bool("update", false, "write openapi.json")

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 string
	Properties           map[string]*schema
	Items                *schema
	Required             []string
	Enum                 []string
	AdditionalProperties *bool
}

type content struct {
	JSON struct{ Schema *schema } `json:"application/json"`
}

type operation struct {
	OperationID string
	Parameters  []struct {
		Name     string
		Required bool
		Schema   *schema
	}
	RequestBody *struct{ Content content }
	Responses   map[string]struct{ Content content }
}

type description struct {
	OpenAPI    string
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

func readDescription(t *testing.T) (d description) {
	file, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(file, &d))
	return d
}

func TestOpenAPIFileEqualsTheServedOne(t *testing.T) {
	served := newHandlerTest(t).send("GET", "/openapi.json", "").Text
	if *update {
		require.NoError(t, os.WriteFile("openapi.json", []byte(served), 0o644))
	}
	file, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	require.Equal(t, string(file), served, "go test ./admin -run OpenAPI -update writes the file")
}

func TestOpenAPIHasAllPathsOfThePackageComment(t *testing.T) {
	d := readDescription(t)
	require.Equal(t, "3.1.0", d.OpenAPI)
	got, ids := []string{}, []string{}
	for path, methods := range d.Paths {
		for method, o := range methods {
			got, ids = append(got, method+" "+path), append(ids, o.OperationID)
		}
	}
	require.ElementsMatch(t, []string{
		"get /objects", "get /object", "get /members", "post /force", "post /release", "post /drain", "post /reset", "post /hold", "post /limits",
		"post /silence", "post /unsilence", "post /test",
	}, got)
	slices.Sort(ids)
	require.Equal(t, ids, slices.Compact(slices.Clone(ids)), "operations have different names")
}

// Each operation succeeds with the fields of its description, and fails without the fields that the
// description requires. The answers have only members that are described.
func TestHandlerDoesWhatOpenAPISays(t *testing.T) {
	d := readDescription(t)
	hosts := weir.NewGroup[string]("g", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerMinute(1), MaxConcurrent: 2}})
	for range 3 {
		if permit, err := hosts.Get("k").Allow(t.Context()); err == nil {
			permit.Record(t.Context(), nil, breaker.Success)
		}
	}
	monitor := alert.NewMonitor(alert.Config{Instance: "m", Notify: []alert.Notifier{alert.Log(slog.New(slog.DiscardHandler))}}, alert.Rule{
		Name: "r", Value: alert.Bool(func() bool { return true }), When: alert.Above(0), Severity: "page",
	})
	monitor.Evaluate(time.Now())
	k := newHandlerTest(t, hosts, monitor)
	panicking, err := admin.New(admin.Config{Authorize: func(*http.Request, admin.Action) (string, error) { panic("x") }})
	require.NoError(t, err)
	panics := &handlerTest{T: t, handler: panicking}
	examples := map[string]string{
		"state": `"open"`, "for": `"1h"`, "reason": `"x"`, "rate": `"5/s"`, "burst": "3", "max_concurrent": "1",
		"match": `["alertname=r"]`, "silence": `"s"`, "notifier": `"log"`,
	}
	others := []string{"limit", "k", "max_refusal"} // that a group of gates does not have
	for path, methods := range d.Paths {
		for method, o := range methods {
			target := path + "?name=g"
			switch path {
			case "/force", "/release", "/drain", "/hold", "/reset":
				target += "&key=k"
			case "/limits":
				target += "&all=true"
			case "/objects":
				target = path
			case "/silence", "/unsilence", "/test":
				target = path + "?name=m"
			}
			require.NoError(t, monitor.Silence(alert.Silence{Name: "s", Match: []string{"alertname=r"}, EndsAt: time.Now().Add(time.Hour)}))
			var members, names []string
			if o.RequestBody != nil {
				body := o.RequestBody.Content.JSON.Schema
				require.False(t, *body.AdditionalProperties)
				for name := range body.Properties {
					if slices.Contains(others, name) {
						continue
					}
					members, names = append(members, `"`+name+`":`+examples[name]), append(names, name)
				}
				for _, name := range body.Required {
					a := k.send("POST", target, "{}")
					require.Equal(t, 400, a.Status, "%s without %s", path, name)
				}
				require.Subset(t, names, body.Required)
			}
			a := k.send(strings.ToUpper(method), target, "{"+strings.Join(members, ",")+"}")
			require.Equal(t, 200, a.Status, "%s: %s", path, a.Error)
			d.check(t, path, a.Text, o.Responses["200"].Content.JSON.Schema)
			if path == "/object" {
				d.check(t, path, k.send("GET", "/object?name=m", "").Text, o.Responses["200"].Content.JSON.Schema)
			}
			refused := k.send(strings.ToUpper(method), target+"&x=1", "")
			require.Contains(t, o.Responses, "400")
			d.check(t, path, refused.Text, o.Responses["400"].Content.JSON.Schema)
			for status, answer := range map[string]answer{"405": k.send("PATCH", target, ""), "500": panics.send(strings.ToUpper(method), target, "")} {
				require.Equal(t, status, strconv.Itoa(answer.Status), path)
				require.Contains(t, o.Responses, status)
				d.check(t, path, answer.Text, o.Responses[status].Content.JSON.Schema)
			}
		}
	}
}

// check asserts that the text matches the schema, and has no members that the schema does not have.
func (d *description) check(t *testing.T, at, text string, s *schema) {
	t.Helper()
	if name, isRef := strings.CutPrefix(s.Ref, "#/components/schemas/"); isRef {
		s = d.Components.Schemas[name]
		require.NotNil(t, s, name)
	}
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	checkValue(t, at, value, s)
}

func checkValue(t *testing.T, at string, value any, s *schema) {
	t.Helper()
	switch v := value.(type) {
	case map[string]any:
		require.Equal(t, "object", s.Type, at)
		for name, member := range v {
			require.Contains(t, s.Properties, name, at)
			checkValue(t, at+"."+name, member, s.Properties[name])
		}
		for _, name := range s.Required {
			require.Contains(t, v, name, at)
		}
	case []any:
		require.Equal(t, "array", s.Type, at)
		for _, item := range v {
			checkValue(t, at+"[]", item, s.Items)
		}
	case float64:
		require.Contains(t, []string{"integer", "number"}, s.Type, at)
	case bool:
		require.Equal(t, "boolean", s.Type, at)
	default:
		require.Equal(t, "string", s.Type, at)
	}
}

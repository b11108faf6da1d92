package admin

import (
	"net/http"
	"reflect"
	"strings"
	"time"
)

// jsonMap is a JSON object of the description.
type jsonMap = map[string]any

// describe returns the OpenAPI description of the handler, made of the table of routes and of the
// types of the answers. https://spec.openapis.org/oas/v3.1.0
func describe() jsonMap {
	paths := jsonMap{}
	for _, r := range routes() {
		if r.path == "/openapi.json" {
			continue
		}
		methods, known := paths[r.path].(jsonMap)
		if !known {
			methods = jsonMap{}
			paths[r.path] = methods
		}
		methods[strings.ToLower(r.method)] = r.describe()
	}
	return jsonMap{
		"openapi": "3.1.0",
		"info": jsonMap{
			"title": "weir admin", "version": "1",
			"description": "Lists gates, breakers, limiters, throttles, alert monitors and other objects, and acts on them.",
		},
		"paths": paths,
		"components": jsonMap{"schemas": jsonMap{
			"Object":  schemaOf(reflect.TypeFor[objectView]()),
			"Details": schemaOf(reflect.TypeFor[details]()),
			"Objects": schemaOf(reflect.TypeFor[objectList]()),
			"Members": schemaOf(reflect.TypeFor[memberList]()),
			"Problem": schemaOf(reflect.TypeFor[problem]()),
		}},
	}
}

// problems are the statuses of refused requests.
var problems = map[string]string{
	"400": "A parameter, a field or a value is missing, unknown or invalid.",
	"401": "The request has no valid credentials.",
	"403": "The user may not do this, or the request comes from a different origin.",
	"404": "There is no such object, key, silence or notifier.",
	"405": "The path has another method.",
	"409": "The name is ambiguous. Of actions also: the object cannot do this, or another action is in progress.",
	"429": "The user sends too many requests.",
	"500": "Config.Authorize of the program panicked.",
	"502": "A server that the action needs does not answer, or a test message was not delivered.",
	"503": "Too many requests are being served, or too many objects have timed actions.",
}

var bodyProblems = map[string]string{
	"408": "The body was too slow.",
	"413": "The body is too large.",
	"415": "The Content-Type is not application/json.",
}

func (r *route) describe() jsonMap {
	o := jsonMap{
		"operationId": r.verb(), "summary": r.help,
		"responses": jsonMap{"200": jsonMap{"description": "Done.", "content": jsonContent(reference(r.answer))}},
	}
	if r.method == http.MethodGet {
		o["operationId"] = "get" + r.answer
	}
	addProblems(o, problems)
	var parameters []jsonMap
	for _, f := range r.query {
		parameters = append(parameters, jsonMap{
			"name": f.name, "in": "query", "required": f.required, "description": f.help, "schema": f.schema(),
		})
	}
	if parameters != nil {
		o["parameters"] = parameters
	}
	if r.method == http.MethodPost {
		addProblems(o, bodyProblems)
		o["requestBody"] = r.describeBody()
	}
	return o
}

func (r *route) describeBody() jsonMap {
	properties, required := jsonMap{}, []string{}
	for _, f := range r.body {
		s := f.schema()
		s["description"] = f.help
		properties[f.name] = s
		if f.required {
			required = append(required, f.name)
		}
	}
	schema := jsonMap{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return jsonMap{"required": len(required) > 0, "content": jsonContent(schema)}
}

func addProblems(operation jsonMap, list map[string]string) {
	responses, _ := operation["responses"].(jsonMap)
	for status, text := range list {
		responses[status] = jsonMap{"description": text, "content": jsonContent(reference("Problem"))}
	}
}

func (f *field) schema() jsonMap {
	s := jsonMap{"type": f.kind}
	switch f.kind {
	case "integer":
		s["minimum"] = 1
	case "number":
		s["exclusiveMinimum"] = 0
	case "array":
		s["items"], s["minItems"] = jsonMap{"type": "string"}, 1
	}
	if f.enum != nil {
		s["enum"] = f.enum
	}
	return s
}

func jsonContent(schema jsonMap) jsonMap {
	return jsonMap{"application/json": jsonMap{"schema": schema}}
}

func reference(schema string) jsonMap { return jsonMap{"$ref": "#/components/schemas/" + schema} }

// schemaOf returns the schema of a type as encoding/json writes it.
func schemaOf(t reflect.Type) jsonMap {
	if t == reflect.TypeFor[time.Time]() {
		return jsonMap{"type": "string", "format": "date-time"}
	}
	switch t.Kind() { //nolint:exhaustive // the answers have no other kinds, and a test checks all of them
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return jsonMap{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Int, reflect.Int64:
		return jsonMap{"type": "integer"}
	case reflect.Float64:
		return jsonMap{"type": "number"}
	case reflect.Bool:
		return jsonMap{"type": "boolean"}
	case reflect.Struct:
		properties, required := jsonMap{}, []string{}
		for _, f := range reflect.VisibleFields(t) {
			name, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous {
				continue
			}
			properties[name] = schemaOf(f.Type)
			if !tagged || !strings.Contains(options, "omitempty") {
				required = append(required, name)
			}
		}
		return jsonMap{"type": "object", "properties": properties, "required": required}
	}
	return jsonMap{"type": "string"}
}

module github.com/weir-go/weir/weirconfig

go 1.26.0

require (
	github.com/stretchr/testify v1.7.2
	github.com/weir-go/weir v0.0.0
	go.yaml.in/yaml/v4 v4.0.0
)

require (
	github.com/davecgh/go-spew v1.1.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/weir-go/weir => ..

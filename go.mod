module github.com/weir-go/weir

go 1.26.0

require github.com/stretchr/testify v1.7.2

require (
	github.com/davecgh/go-spew v1.1.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

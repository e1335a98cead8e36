module github.com/tidegate/tidegate/plugins/traefik

go 1.19

"""`./task k8s`: the acceptance of image and chart on any Kubernetes cluster; see `--help`."""

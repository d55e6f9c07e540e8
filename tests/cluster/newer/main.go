// Copyright (c) 2026 railops.rdma contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// An API server whose custom resources are a newer Kubernetes' and whose core is an older one's. Never shipped.
//
// Debian has the source of the current apiextensions-apiserver, which is the part of kube-apiserver that serves
// custom resources, but of a whole kube-apiserver only an old one. This is the new part, with the old server
// behind it for all groups that the old one serves itself, and for who may do what.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
)

const extensions = "apiextensions.k8s.io"

// core is the older server.
type core struct {
	proxy  *httputil.ReverseProxy
	groups []metav1.APIGroup
}

// newCore asks the older server, which trusts the bearer of the token, for its groups.
func newCore(address, authority, token string) (*core, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", authority)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, MaxIdleConnsPerHost: 64}
	request, err := http.NewRequest(http.MethodGet, address+"/apis", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s/apis: %s: %s", address, answer.Status, data)
	}
	var listed metav1.APIGroupList
	if err := json.Unmarshal(data, &listed); err != nil {
		return nil, err
	}
	found := &core{proxy: httputil.NewSingleHostReverseProxy(target)}
	found.proxy.Transport = transport
	// Watches are told at once.
	found.proxy.FlushInterval = -1
	for _, group := range listed.Groups {
		if group.Name != extensions {
			found.groups = append(found.groups, group)
		}
	}
	return found, nil
}

// serves tells whether the older server answers for a path.
func (c *core) serves(path string) bool {
	if path == "/version" || strings.HasPrefix(path, "/api/") || path == "/api" || strings.HasPrefix(path, "/openapi/") {
		return true
	}
	for _, group := range c.groups {
		if path == "/apis/"+group.Name || strings.HasPrefix(path, "/apis/"+group.Name+"/") {
			return true
		}
	}
	return false
}

// front is what clients see of both.
type front struct {
	core        *core
	newer       http.Handler
	definitions listers.CustomResourceDefinitionLister
}

// ServeHTTP hands a request to the server that it is for.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case f.core.serves(r.URL.Path):
		f.core.proxy.ServeHTTP(w, r)
	case r.URL.Path == "/apis" || r.URL.Path == "/apis/":
		f.listGroups(w, r)
	default:
		f.newer.ServeHTTP(w, r)
	}
}

// listGroups answers with both servers' groups, as kube-apiserver's aggregator does for its own parts.
func (f *front) listGroups(w http.ResponseWriter, r *http.Request) {
	listed := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	listed.Groups = append(listed.Groups, f.core.groups...)
	names := sets.New(extensions)
	definitions, err := f.definitions.List(labels.Everything())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, definition := range definitions {
		names.Insert(definition.Spec.Group)
	}
	for _, name := range sets.List(names) {
		asked := r.Clone(r.Context())
		asked.URL.Path = "/apis/" + name
		asked.Header.Set("Accept", "application/json")
		asked.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		f.newer.ServeHTTP(answer, asked)
		var group metav1.APIGroup
		if answer.Code == http.StatusOK && json.Unmarshal(answer.Body.Bytes(), &group) == nil {
			listed.Groups = append(listed.Groups, group)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(listed)
}

func main() {
	ctx := genericapiserver.SetupSignalContext()
	o := options.NewCustomResourceDefinitionsServerOptions(os.Stdout, os.Stderr)
	var address, authority, token string
	command := &cobra.Command{
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return o.ServerRunOptions.ComponentGlobalsRegistry.Set()
		},
		RunE: func(*cobra.Command, []string) error {
			if err := errors.Join(o.Complete(), o.Validate()); err != nil {
				return err
			}
			older, err := newCore(address, authority, token)
			if err != nil {
				return err
			}
			config, err := o.Config()
			if err != nil {
				return err
			}
			both := &front{core: older}
			config.GenericConfig.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
				both.newer = genericapiserver.DefaultBuildHandlerChain(handler, c)
				return both
			}
			server, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
			if err != nil {
				return err
			}
			both.definitions = server.Informers.Apiextensions().V1().CustomResourceDefinitions().Lister()
			return server.GenericAPIServer.PrepareRun().RunWithContext(ctx)
		},
	}
	flags := command.Flags()
	o.AddFlags(flags)
	flags.StringVar(&address, "core", "", "the older server's address")
	flags.StringVar(&authority, "core-authority", "", "the certificate to trust it by")
	flags.StringVar(&token, "core-token", "", "a token of an administrator")
	command.SetContext(ctx)
	os.Exit(cli.Run(command))
}

package sites_test

import (
	"fmt"

	"github.com/weftstack/weft/internal/sites"
)

func ExampleParse() {
	f, err := sites.Parse("sites", []byte(`
		jobs key-file jobs.key
		site lyon
		  hosts n1 n[2-4]
		  gateway a lan 10.0.0.254:5747 wan 192.0.2.1:5748
		site tokyo
		  hosts t1 t2
		  gateway a lan 10.0.0.254:5747 wan 198.51.100.1:5748
		leg lyon tokyo key-file wan.key
	`))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := f.Place("n3", 0)
	fmt.Println(p.Site.Name, p.Node, err)
	_, err = sites.Parse("sites", []byte("site lyon\nhost n1"))
	fmt.Println(err)
	// Output:
	// lyon 3 <nil>
	// sites:2: "host": want jobs, mode, site, hosts, ranks, gateway, tcp, leg, route or job-class
}

package frame

import "testing"

func TestGreeting(t *testing.T) {
	key := []byte("a key of sixteen")
	g := Greeting{Role: RoleNode, From: Address{1, 2, 3}, Job: 4, Incarnation: 5, Site: 1, Node: 8, Process: 9, Nonce: [NonceSize]byte{6}}
	hello := AppendHello(nil, &g)
	if got, err := ParseHello(hello); err != nil || got != g {
		t.Fatalf("ParseHello = %+v, %v, want %+v", got, err, g)
	}
	r := Reply{Site: 1, Gateway: 2, Incarnation: 3, Nonce: [NonceSize]byte{7}}
	answer := AppendAnswer(nil, &r, key, hello)
	if got, ok, err := ParseAnswer(answer, key, hello); err != nil || !ok || got != r {
		t.Fatalf("ParseAnswer = %+v, %t, %v, want %+v", got, ok, err, r)
	}
	prove := AppendProve(nil, key, hello, answer)
	if ok, err := ParseProve(prove, key, hello, answer); err != nil || !ok {
		t.Fatalf("ParseProve = %t, %v", ok, err)
	}
	if err := ParseWelcome(AppendWelcome(nil)); err != nil {
		t.Fatal(err)
	}
	// A changed bit anywhere, or another key, is noticed.
	for i := range answer {
		bad := append([]byte{}, answer...)
		bad[i] ^= 1
		if _, ok, err := ParseAnswer(bad, key, hello); err == nil && ok && i != 1 {
			t.Errorf("answer with a changed byte %d accepted", i)
		}
		if i > 1 && i < answerBody {
			if ok, _ := ParseProve(prove, key, hello, bad); ok {
				t.Errorf("proof for another answer accepted (byte %d)", i)
			}
		}
	}
	for i := range hello {
		bad := append([]byte{}, hello...)
		bad[i] ^= 1
		if _, ok, _ := ParseAnswer(answer, key, bad); ok {
			t.Errorf("answer to another hello accepted (byte %d)", i)
		}
	}
	if ok, _ := ParseProve(prove, []byte("another key of 16"), hello, answer); ok {
		t.Error("proof with another key accepted")
	}
	for _, b := range [][]byte{nil, hello[:len(hello)-1], answer} {
		if _, err := ParseHello(b); err == nil {
			t.Errorf("ParseHello accepted %d bytes", len(b))
		}
	}
}

import Testing

@testable import Media

@Suite("Links that are shown")
struct WebLinkTests {
    @Test(
        "a link with a credential is not shown, on any host",
        arguments: [
            ("https://x/f?token=a", false), ("https://x:8443/f?v=1&TOKEN=a", false),
            ("https://cdn/f?token=a", false), ("https://cdn/f?%74oken=a", false),
            ("https://cdn/f?token=0123456789abcdef0123456789abcdef", false),
            ("https://cdn/f?auth_token=a", false), ("https://cdn/f?api-key=a", false),
            ("https://cdn/f?session=a", false), ("https://cdn/f?inside=a&author=b&keys=c", true),
            // Signed links to one file, made to be passed on.
            ("https://s3/f?X-Amz-Credential=a&X-Amz-Security-Token=b&X-Amz-Signature=c", true),
            ("https://gcs/f?X-Goog-Credential=a&X-Goog-Signature=c", true),
            ("https://x/f?key=thumb&sig=abc", true), ("https://x/tokens?a=b", true),
            ("https://cdn/f?access_token=a", false), ("https://cdn/f#access_token=a", false),
            ("https://cdn/f?a=1;jwt=x", false), ("https://cdn/f?a=eyJhb.eyJz.c2ln", false),
            ("https://cdn/f?a=eyJhb", true), ("https://u:p@cdn/f", false), ("https://cdn/a@b", true),
            ("https://cdn\\@evil/", false), ("https://", false), ("https:///f", false),
            ("javascript:alert(1)", false), ("ftp://x/f", false), ("http://x/ü", true),
            ("http://x/" + String(repeating: "a", count: 2048), false),
        ])
    func links(url: String, isShown: Bool) {
        #expect(WebLink.shown(url) == (isShown ? url : nil))
    }
}

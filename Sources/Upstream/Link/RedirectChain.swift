import HTTPProtocol

/// The redirects of one attempt to open a link, and which of them are followed.
///
/// A redirect is taken for the attempt at hand only, a permanent one too: the next attempt begins at the configured
/// URL. Credentials go along, so it never leads to another host or port, nor out of encryption.
struct RedirectChain {
    /// Redirects followed in one attempt. Two are seen in practice (a slash added, then encryption); browsers stop at 20.
    static let maxRedirects = 5

    /// Why a redirect was not followed; a sentence without a full stop.
    struct Refusal: Error, Equatable {
        var sentence: String
    }

    /// The URLs of the attempt, the first included.
    private(set) var visited: [HTTPURL]

    /// - Parameter start: the URL without what authentication adds to it.
    init(start: HTTPURL) { visited = [start] }

    /// The URL that is asked now.
    var current: HTTPURL? { visited.last }

    /// Follows the redirect of an answer.
    ///
    /// - Parameter location: the header as it came. Its query is never repeated, since it may carry tokens.
    mutating func follow(status: Int, location: String) throws(Refusal) -> HTTPURL {
        guard let from = visited.last else { throw Refusal(sentence: "the server redirects (\(status)) from nowhere") }
        let start = "the server redirects (\(status)) from \(from) to "
        let target: HTTPURL
        do throws(HTTPURLError) {
            target = try from.resolving(location: location)
        } catch {
            throw Refusal(sentence: start + "an address that cannot be used: \(error.sentence)")
        }
        guard target.host == from.host, target.isUnixSocket == from.isUnixSocket else {
            throw Refusal(sentence: start + "\(target), which is another host; redirects are followed on one host only")
        }
        guard target.isSecure || !from.isSecure else {
            throw Refusal(sentence: start + "\(target), which is not encrypted")
        }
        // Where the host's usual ports are, encryption is at another one.
        let isUpgrade = from.port == 80 && target.port == 443 && target.isSecure
        guard target.port == from.port || isUpgrade else {
            throw Refusal(sentence: start + "\(target), which is another port")
        }
        guard !visited.contains(target) else {
            throw Refusal(sentence: start + "\(target), where we have been: a loop")
        }
        guard visited.count <= Self.maxRedirects else {
            throw Refusal(
                sentence: start + "\(target) after \(Self.maxRedirects) other redirects, which is one too many")
        }
        visited.append(target)
        return target
    }
}

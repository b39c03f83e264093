import CSystem

/// Name and version of this program.
package enum BuildInformation {
    package static let name = "chatbridge"
    /// The number of the release that this source is, or is to become: the one place where it is written. `scripts/version` reads
    /// it, and refuses a tag that says otherwise.
    package static let release = "0.2.0"
    /// The release, or what the build was told: `0.2.0-dev.12+g4987c6a` for a snapshot. Source: semver.org 2.0.0, §9 and §10.
    package static let version: String = {
        let given = String(cString: cb_build_version())
        return given.isEmpty ? release : given
    }()
}

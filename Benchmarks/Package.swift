// swift-tools-version: 6.1
import PackageDescription

// Measurements, apart from the program so that nobody builds them by accident. Run them in release:
//
//     swift run -c release --package-path Benchmarks codec-bench

let package = Package(
    name: "chatbridge-benchmarks",
    dependencies: [.package(name: "chatbridge", path: "..")],
    targets: [
        .executableTarget(
            name: "codec-bench",
            dependencies: [
                .product(name: "DescribedDialects", package: "chatbridge"),
                .product(name: "Dialects", package: "chatbridge"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
            ])
    ],
    swiftLanguageModes: [.v6]
)

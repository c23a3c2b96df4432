// Package runtime runs one piece of untrusted code, or one command, in one
// gVisor sandbox, and destroys the sandbox afterwards.
//
//	engine, err := runtime.Open(ctx, runtime.Config{State: "/run/gaol", Runsc: "/usr/local/bin/runsc"})
//	if err != nil { … }
//	defer engine.Close()
//	result, err := engine.Run(ctx, runtime.Request{
//		Rootfs: rootfs,                  // from package images
//		Policy: policy.Builtin().Policy, // or a narrower one
//		Code:   &runtime.Code{Name: "hello.py", Source: []byte("print(6*7)")},
//	})
//
// An error means that gaol could not do its part; a [Result] says what the
// program did, whatever that was. Read in this order, the files follow the
// life of a sandbox: engine, request, run, plan, lease, spec and env, bundle,
// mounts, launch, adopt, control, start, output, watch, await, settle, conclude,
// result, and, for what a dead owner left, reap.
//
// What it does not protect: the kernel below gVisor, side channels of the
// hardware, the program's own workspace (the program may destroy it), and the
// host from whoever may write config.toml.
//
// An Engine makes its process a child subreaper, since the processes of a
// sandbox outlive the command that starts them; a program that embeds this
// package inherits that.
package runtime
